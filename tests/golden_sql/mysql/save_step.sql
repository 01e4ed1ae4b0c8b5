-- -------- a step

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1
FROM steady_queue_claimed_executions
WHERE job_id = :job_1 AND token = :token
FOR UPDATE;

INSERT INTO steady_queue_steps (job_id, token, name, position, is_sleep, data, stored_at)
SELECT *
FROM (
  SELECT job_id AS new_job_id, token AS new_token, 'charge' AS new_name,
    '2' AS new_position, '0' AS new_is_sleep, '{"paid":17}' AS new_data,
    UTC_TIMESTAMP(6) AS new_stored_at
  FROM steady_queue_claimed_executions
  WHERE job_id = :job_1 AND token = :token
) AS new
ON DUPLICATE KEY UPDATE token = new_token, position = new_position,
  is_sleep = new_is_sleep, data = new_data, stored_at = new_stored_at;

COMMIT;
