-- -------- a checkpoint

BEGIN IMMEDIATE;

INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, '{"row":17}', NULL, NULL, '',
  (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
ON CONFLICT (job_id) DO UPDATE
SET token = excluded.token, updated_at = excluded.updated_at, data = excluded.data
RETURNING job_id;

COMMIT;

-- -------- progress

BEGIN IMMEDIATE;

INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, NULL, 17, 100, 'rows', (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
ON CONFLICT (job_id) DO UPDATE
SET token = excluded.token, updated_at = excluded.updated_at, done = excluded.done,
  total = excluded.total, text = excluded.text
RETURNING job_id;

COMMIT;

-- -------- both

BEGIN IMMEDIATE;

INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, '{"row":17}', 17, NULL, '',
  (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
ON CONFLICT (job_id) DO UPDATE
SET token = excluded.token, updated_at = excluded.updated_at, data = excluded.data,
  done = excluded.done, total = excluded.total, text = excluded.text
RETURNING job_id;

COMMIT;
