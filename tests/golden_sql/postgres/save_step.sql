-- -------- a step

-- %(job_id)s = :job_1
-- %(token)s = :token
-- %(name)s = 'charge'
-- %(position)s = 2
-- %(is_sleep)s = false
-- %(data)s = '{"paid":17}'
WITH held AS MATERIALIZED (
  SELECT job_id, token
  FROM steady_queue_claimed_executions
  WHERE job_id = %(job_id)s AND token = %(token)s
  FOR UPDATE
)
INSERT INTO steady_queue_steps (job_id, token, name, position, is_sleep, data, stored_at)
SELECT job_id, token, %(name)s::text, %(position)s::integer, %(is_sleep)s::boolean,
  %(data)s::text, statement_timestamp()
FROM held
ON CONFLICT (job_id, name) DO UPDATE
SET token = excluded.token, position = excluded.position, is_sleep = excluded.is_sleep,
  data = excluded.data, stored_at = excluded.stored_at
RETURNING job_id;
