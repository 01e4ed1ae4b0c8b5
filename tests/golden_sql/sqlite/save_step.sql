-- -------- a step

BEGIN IMMEDIATE;

INSERT INTO steady_queue_steps (job_id, token, name, position, is_sleep, data, stored_at)
SELECT job_id, token, 'charge', 2, false, '{"paid":17}',
  (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
ON CONFLICT (job_id, name) DO UPDATE
SET token = excluded.token, position = excluded.position, is_sleep = excluded.is_sleep,
  data = excluded.data, stored_at = excluded.stored_at
RETURNING job_id;

COMMIT;
