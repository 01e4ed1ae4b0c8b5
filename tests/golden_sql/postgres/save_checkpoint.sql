-- -------- a checkpoint

-- %(job_id)s = :job_1
-- %(token)s = :token
-- %(data)s = '{"row":17}'
-- %(done)s = NULL
-- %(total)s = NULL
-- %(text)s = ''
WITH held AS MATERIALIZED (
  SELECT job_id, token
  FROM steady_queue_claimed_executions
  WHERE job_id = %(job_id)s AND token = %(token)s
  FOR UPDATE
)
INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, %(data)s::text, %(done)s::double precision,
  %(total)s::double precision, %(text)s::text, statement_timestamp()
FROM held
ON CONFLICT (job_id) DO UPDATE
SET token = excluded.token, updated_at = excluded.updated_at, data = excluded.data
RETURNING job_id;

-- -------- progress

-- %(job_id)s = :job_1
-- %(token)s = :token
-- %(data)s = NULL
-- %(done)s = 17
-- %(total)s = 100
-- %(text)s = 'rows'
WITH held AS MATERIALIZED (
  SELECT job_id, token
  FROM steady_queue_claimed_executions
  WHERE job_id = %(job_id)s AND token = %(token)s
  FOR UPDATE
)
INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, %(data)s::text, %(done)s::double precision,
  %(total)s::double precision, %(text)s::text, statement_timestamp()
FROM held
ON CONFLICT (job_id) DO UPDATE
SET token = excluded.token, updated_at = excluded.updated_at, done = excluded.done,
  total = excluded.total, text = excluded.text
RETURNING job_id;

-- -------- both

-- %(job_id)s = :job_1
-- %(token)s = :token
-- %(data)s = '{"row":17}'
-- %(done)s = 17
-- %(total)s = NULL
-- %(text)s = ''
WITH held AS MATERIALIZED (
  SELECT job_id, token
  FROM steady_queue_claimed_executions
  WHERE job_id = %(job_id)s AND token = %(token)s
  FOR UPDATE
)
INSERT INTO steady_queue_checkpoints (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, %(data)s::text, %(done)s::double precision,
  %(total)s::double precision, %(text)s::text, statement_timestamp()
FROM held
ON CONFLICT (job_id) DO UPDATE
SET token = excluded.token, updated_at = excluded.updated_at, data = excluded.data,
  done = excluded.done, total = excluded.total, text = excluded.text
RETURNING job_id;
