-- -------- a key with a waiting job

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

-- %(keys)s = ARRAY['key']
SELECT "key" FROM steady_queue_semaphores WHERE "key" = ANY(%(keys)s) ORDER BY "key" FOR UPDATE;

-- %(keys)s = ARRAY['key']
WITH semaphore AS MATERIALIZED (
  SELECT "key", "limit",
    GREATEST(
      0,
      "limit" - (
        SELECT count(*) FROM steady_queue_permits AS permit WHERE permit."key" = known."key"
      )
    ) AS remaining
  FROM steady_queue_semaphores AS known
  WHERE "key" = ANY(%(keys)s)
),
picked AS MATERIALIZED (
  SELECT first.job_id
  FROM semaphore
  CROSS JOIN LATERAL (
    SELECT job_id
    FROM steady_queue_blocked_executions AS waiting
    WHERE waiting.concurrency_key = semaphore."key"
    ORDER BY waiting."rank", waiting.job_id
    LIMIT semaphore.remaining
  ) AS first
),
admitted AS (
  DELETE FROM steady_queue_blocked_executions
  WHERE job_id = ANY(ARRAY(SELECT job_id FROM picked))
  RETURNING job_id, queue_name, "rank", token, concurrency_key
),
permit AS (
  INSERT INTO steady_queue_permits (job_id, "key")
  SELECT job_id, concurrency_key
  FROM admitted
  ON CONFLICT (job_id) DO UPDATE
  SET "key" = excluded."key"
),
ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at)
  SELECT job_id, queue_name, "rank", token, statement_timestamp()
  FROM admitted
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at
),
counted AS (
  UPDATE steady_queue_semaphores AS known
  SET value = remaining - (
    SELECT count(*) FROM admitted WHERE admitted.concurrency_key = semaphore."key"
  )
  FROM semaphore
  WHERE known."key" = semaphore."key"
)
SELECT count(*)
FROM admitted;

COMMIT;

-- -------- an unknown key

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

-- %(keys)s = ARRAY['key']
SELECT "key" FROM steady_queue_semaphores WHERE "key" = ANY(%(keys)s) ORDER BY "key" FOR UPDATE;

-- %(keys)s = ARRAY['key']
INSERT INTO steady_queue_semaphores AS known ("key", value, "limit")
SELECT given."key", 0, concurrency_limit
FROM unnest(%(keys)s::text[]) AS given("key")
CROSS JOIN LATERAL (
  SELECT concurrency_limit
  FROM steady_queue_blocked_executions AS waiting
  JOIN steady_queue_jobs AS job ON job.id = waiting.job_id
  WHERE waiting.concurrency_key = given."key"
  ORDER BY waiting."rank", job_id
  LIMIT 1
) AS first
WHERE concurrency_limit IS NOT NULL
ORDER BY given."key" COLLATE "C"
ON CONFLICT ("key") DO UPDATE
SET value = known.value
RETURNING "key";

-- %(keys)s = ARRAY['key']
-- WITH semaphore AS MATERIALIZED ( ... as under "a key with a waiting job"

COMMIT;
