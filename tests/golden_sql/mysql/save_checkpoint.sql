-- -------- a checkpoint

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
FOR UPDATE;

INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT *
FROM (
  SELECT job_id AS new_job_id, token AS new_token, '{"row":17}' AS new_data,
    NULL AS new_done, NULL AS new_total, '' AS new_text, UTC_TIMESTAMP(6) AS new_updated_at
  FROM steady_queue_claimed_executions
  WHERE job_id = :job_1 AND token = :token
) AS new
ON DUPLICATE KEY UPDATE token = new_token, updated_at = new_updated_at, data = new_data;

COMMIT;

-- -------- progress

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
FOR UPDATE;

INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT *
FROM (
  SELECT job_id AS new_job_id, token AS new_token, NULL AS new_data, '17' AS new_done,
    '100' AS new_total, 'rows' AS new_text, UTC_TIMESTAMP(6) AS new_updated_at
  FROM steady_queue_claimed_executions
  WHERE job_id = :job_1 AND token = :token
) AS new
ON DUPLICATE KEY UPDATE token = new_token, updated_at = new_updated_at, done = new_done,
  total = new_total, text = new_text;

COMMIT;

-- -------- both

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
FOR UPDATE;

INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT *
FROM (
  SELECT job_id AS new_job_id, token AS new_token, '{"row":17}' AS new_data,
    '17' AS new_done, NULL AS new_total, '' AS new_text, UTC_TIMESTAMP(6) AS new_updated_at
  FROM steady_queue_claimed_executions
  WHERE job_id = :job_1 AND token = :token
) AS new
ON DUPLICATE KEY UPDATE token = new_token, updated_at = new_updated_at, data = new_data,
  done = new_done, total = new_total, text = new_text;

COMMIT;
