-- -------- due jobs

PREPARE steady_queue_settings AS
SELECT set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('jit', 'off', true), set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_0 AS
WITH due AS MATERIALIZED (
  SELECT ctid AS tid, concurrency_key
  FROM steady_queue_scheduled_executions
  WHERE due_at <= statement_timestamp()
  ORDER BY due_at, "rank", job_id
  LIMIT $1
  FOR UPDATE SKIP LOCKED
),
moved AS (
  DELETE FROM steady_queue_scheduled_executions
  WHERE ctid = ANY(ARRAY(SELECT tid FROM due WHERE concurrency_key IS NULL))
  RETURNING job_id, queue_name, "rank", token
),
ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), job_id
  FROM moved
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
)
SELECT (SELECT count(*) FROM moved) AS moved,
  (SELECT count(*) FROM due WHERE concurrency_key IS NOT NULL) AS limited,
  CASE WHEN EXISTS (
    SELECT
    FROM steady_queue_scheduled_executions
    WHERE due_at <= statement_timestamp() AND job_id NOT IN (SELECT job_id FROM moved)
  ) THEN 0 ELSE (
    SELECT date_part('epoch', min(due_at) - statement_timestamp())
    FROM steady_queue_scheduled_executions
    WHERE due_at > statement_timestamp()
  ) END AS next_due_in;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (10);

-- -------- a due job with a limit

-- PREPARE steady_queue_settings AS ... as under "due jobs"

-- PREPARE steady_queue_0 AS ... as under "due jobs"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (10);

BEGIN;

PREPARE steady_queue_1 AS
WITH due AS MATERIALIZED (
  SELECT ctid AS tid, concurrency_key
  FROM steady_queue_scheduled_executions
  WHERE due_at <= statement_timestamp() AND concurrency_key IS NOT NULL
  ORDER BY due_at, "rank", job_id
  LIMIT $1
  FOR UPDATE SKIP LOCKED
),
moved AS (
  DELETE FROM steady_queue_scheduled_executions
  WHERE ctid = ANY(ARRAY(SELECT tid FROM due))
  RETURNING job_id, queue_name, "rank", token, concurrency_key
),
blocked AS (
  INSERT INTO steady_queue_blocked_executions (
    job_id, queue_name, "rank", token, created_at, concurrency_key
  )
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), concurrency_key
  FROM moved
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, concurrency_key = excluded.concurrency_key
)
SELECT job_id, concurrency_key
FROM moved;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (1);

PREPARE steady_queue_2 AS
SELECT "key"
FROM steady_queue_semaphores
WHERE "key" = ANY($1)
ORDER BY "key"
FOR UPDATE;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_2 (ARRAY['key']);

PREPARE steady_queue_3 AS
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

EXECUTE steady_queue_3 (ARRAY['key']);

PREPARE steady_queue_4 AS
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

EXECUTE steady_queue_4 (ARRAY['key']);

PREPARE steady_queue_5 AS
WITH refused AS (
  DELETE FROM steady_queue_blocked_executions AS waiting USING steady_queue_jobs AS job
  WHERE waiting.job_id = ANY($1)
    AND waiting.token < 4294967296
    AND job.id = ANY($1)
    AND job.id = waiting.job_id
    AND job.concurrency_discards
  RETURNING waiting.job_id
)
DELETE FROM steady_queue_jobs
WHERE id = ANY(ARRAY(SELECT job_id FROM refused))
RETURNING id, metadata;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_5 (ARRAY[:job_1]);

COMMIT;

PREPARE steady_queue_6 AS
SELECT date_part('epoch', min(due_at) - statement_timestamp())
FROM steady_queue_scheduled_executions;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_6;

-- -------- a due job with a limit that finds no permit

-- PREPARE steady_queue_settings AS ... as under "due jobs"

-- PREPARE steady_queue_0 AS ... as under "due jobs"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (10);

BEGIN;

-- PREPARE steady_queue_1 AS ... as under "a due job with a limit"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (1);

-- PREPARE steady_queue_2 AS ... as under "a due job with a limit"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_2 (ARRAY['key']);

PREPARE steady_queue_3 AS
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

EXECUTE steady_queue_3 (ARRAY['key']);

PREPARE steady_queue_4 AS
WITH refused AS (
  DELETE FROM steady_queue_blocked_executions AS waiting USING steady_queue_jobs AS job
  WHERE waiting.job_id = ANY($1)
    AND waiting.token < 4294967296
    AND job.id = ANY($1)
    AND job.id = waiting.job_id
    AND job.concurrency_discards
  RETURNING waiting.job_id
)
DELETE FROM steady_queue_jobs
WHERE id = ANY(ARRAY(SELECT job_id FROM refused))
RETURNING id, metadata;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_4 (ARRAY[:job_1]);

COMMIT;

PREPARE steady_queue_5 AS
SELECT date_part('epoch', min(due_at) - statement_timestamp())
FROM steady_queue_scheduled_executions;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_5;

-- -------- nothing is due

-- PREPARE steady_queue_settings AS ... as under "due jobs"

-- PREPARE steady_queue_0 AS ... as under "due jobs"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (10);
