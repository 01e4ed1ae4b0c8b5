-- -------- a key with a waiting job

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_settings AS
SELECT set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('jit', 'off', true), set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_0 AS
SELECT "key"
FROM steady_queue_semaphores
WHERE "key" = ANY($1)
ORDER BY "key"
FOR UPDATE;

SELECT current_setting('enable_seqscan'), current_setting('enable_bitmapscan'),
  current_setting('enable_nestloop'), current_setting('plan_cache_mode'),
  current_setting('jit');

PREPARE steady_queue_restore AS
SELECT set_config('enable_seqscan', 'on', true),
  set_config('enable_bitmapscan', 'on', true), set_config('enable_nestloop', 'on', true),
  set_config('plan_cache_mode', 'auto', true), set_config('jit', 'on', true);

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (ARRAY['key']);

EXECUTE steady_queue_restore;

PREPARE steady_queue_1 AS
WITH semaphore AS MATERIALIZED (
  SELECT "key", remaining
  FROM steady_queue_semaphores AS known
  CROSS JOIN LATERAL (
    SELECT CASE WHEN count(*) > 50 THEN known.value ELSE known."limit" - count(*) END AS remaining
    FROM (
      SELECT
      FROM steady_queue_permits AS permit
      WHERE permit."key" >= known."key" AND permit."key" <= known."key"
      ORDER BY permit."key"
      LIMIT 51
    ) AS few
  ) AS free
  WHERE "key" = ANY($1)
),
picked AS MATERIALIZED (
  SELECT first.job_id
  FROM semaphore
  CROSS JOIN LATERAL (
    SELECT job_id
    FROM steady_queue_blocked_executions AS waiting
    WHERE waiting.concurrency_key = semaphore."key"
    ORDER BY waiting."rank", waiting.job_id
    LIMIT GREATEST(0, remaining)
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
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), job_id
  FROM admitted
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
),
counted AS (
  UPDATE steady_queue_semaphores AS known
  SET value = remaining - (
    SELECT count(*) FROM admitted WHERE admitted.concurrency_key = semaphore."key"
  )
  FROM semaphore
  WHERE known."key" = ANY($1) AND known."key" = semaphore."key"
)
SELECT count(*)
FROM admitted;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (ARRAY['key']);

EXECUTE steady_queue_restore;

COMMIT;

-- -------- an unknown key

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

-- PREPARE steady_queue_settings AS ... as under "a key with a waiting job"

-- PREPARE steady_queue_0 AS ... as under "a key with a waiting job"

SELECT current_setting('enable_seqscan'), current_setting('enable_bitmapscan'),
  current_setting('enable_nestloop'), current_setting('plan_cache_mode'),
  current_setting('jit');

PREPARE steady_queue_restore AS
SELECT set_config('enable_seqscan', 'on', true),
  set_config('enable_bitmapscan', 'on', true), set_config('enable_nestloop', 'on', true),
  set_config('plan_cache_mode', 'auto', true), set_config('jit', 'on', true);

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (ARRAY['key']);

EXECUTE steady_queue_restore;

PREPARE steady_queue_1 AS
INSERT INTO steady_queue_semaphores AS known ("key", value, "limit")
SELECT given."key",
  concurrency_limit - (
    SELECT count(*) FROM steady_queue_permits AS permit WHERE permit."key" = given."key"
  ),
  concurrency_limit
FROM unnest($1::text[]) AS given("key")
CROSS JOIN LATERAL (
  SELECT concurrency_limit
  FROM (
    SELECT waiting."rank", job_id,
      (
        SELECT concurrency_limit FROM steady_queue_jobs WHERE id = waiting.job_id
      ) AS concurrency_limit
    FROM steady_queue_blocked_executions AS waiting
    WHERE waiting.concurrency_key = given."key"
  ) AS limited
  WHERE concurrency_limit IS NOT NULL
  ORDER BY "rank", job_id
  LIMIT 1
) AS first
ORDER BY given."key" COLLATE "C"
ON CONFLICT ("key") DO UPDATE
SET value = known.value
RETURNING "key";

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (ARRAY['key']);

EXECUTE steady_queue_restore;

PREPARE steady_queue_2 AS
WITH semaphore AS MATERIALIZED (
  SELECT "key", remaining
  FROM steady_queue_semaphores AS known
  CROSS JOIN LATERAL (
    SELECT CASE WHEN count(*) > 50 THEN known.value ELSE known."limit" - count(*) END AS remaining
    FROM (
      SELECT
      FROM steady_queue_permits AS permit
      WHERE permit."key" >= known."key" AND permit."key" <= known."key"
      ORDER BY permit."key"
      LIMIT 51
    ) AS few
  ) AS free
  WHERE "key" = ANY($1)
),
picked AS MATERIALIZED (
  SELECT first.job_id
  FROM semaphore
  CROSS JOIN LATERAL (
    SELECT job_id
    FROM steady_queue_blocked_executions AS waiting
    WHERE waiting.concurrency_key = semaphore."key"
    ORDER BY waiting."rank", waiting.job_id
    LIMIT GREATEST(0, remaining)
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
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), job_id
  FROM admitted
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
),
counted AS (
  UPDATE steady_queue_semaphores AS known
  SET value = remaining - (
    SELECT count(*) FROM admitted WHERE admitted.concurrency_key = semaphore."key"
  )
  FROM semaphore
  WHERE known."key" = ANY($1) AND known."key" = semaphore."key"
)
SELECT count(*)
FROM admitted;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_2 (ARRAY['key']);

EXECUTE steady_queue_restore;

COMMIT;
