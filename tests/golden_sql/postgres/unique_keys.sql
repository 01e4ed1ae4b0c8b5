-- -------- a job with a key

BEGIN;

SHOW default_transaction_isolation;

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

INSERT INTO "steady_queue_unique_keys" ("key", "job_id", "expires_at", "ticket")
VALUES ('a', NULL, NULL, :token)
ON CONFLICT("key") DO UPDATE
SET "ticket" = EXCLUDED."ticket";

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "metadata": "{\"unique\":{\"__sq_tuple__\":[\"a\"]}}"}]'
WITH given AS (
  SELECT *,
    CASE WHEN delay IS NULL THEN run_at WHEN delay > 0 THEN statement_timestamp() + delay * interval '1 microsecond' END AS due_at
  FROM json_to_recordset(%(jobs)s::json) AS job(
    ordinal int, queue_name text, "rank" smallint, task_path text, backend_name text,
    arguments text, max_attempts smallint, run_at timestamptz, delay bigint, metadata text
  )
),
job AS (
  INSERT INTO steady_queue_jobs (
    queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts, token,
    enqueued_at, scheduled_at, metadata
  )
  SELECT queue_name, task_path, backend_name, "rank", arguments, max_attempts, 0, 0,
    statement_timestamp(), due_at, metadata
  FROM given
  ORDER BY ordinal
  RETURNING id, queue_name, "rank", enqueued_at, scheduled_at
),
ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT id, queue_name, "rank", 0, enqueued_at, id
  FROM job
  WHERE NOT COALESCE(scheduled_at > enqueued_at, false)
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
),
scheduled AS (
  INSERT INTO steady_queue_scheduled_executions (
    job_id, queue_name, "rank", token, created_at, due_at
  )
  SELECT id, queue_name, "rank", 0, enqueued_at, scheduled_at
  FROM job
  WHERE COALESCE(scheduled_at > enqueued_at, false)
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, due_at = excluded.due_at,
    concurrency_key = excluded.concurrency_key
)
SELECT array_agg(id) AS job_ids, date_part('epoch', statement_timestamp()) AS enqueued_at
FROM job;

INSERT INTO "steady_queue_unique_keys" ("key", "job_id", "expires_at", "ticket")
VALUES ('a', :job_1, NULL, :token)
ON CONFLICT("key") DO UPDATE
SET "job_id" = EXCLUDED."job_id", "expires_at" = EXCLUDED."expires_at";

COMMIT;

-- -------- a duplicate

BEGIN;

SHOW default_transaction_isolation;

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

SELECT "steady_queue_jobs"."id", "steady_queue_jobs"."queue_name",
  "steady_queue_jobs"."task_path", "steady_queue_jobs"."backend_name",
  "steady_queue_jobs"."rank", "steady_queue_jobs"."concurrency_key",
  "steady_queue_jobs"."concurrency_limit", "steady_queue_jobs"."concurrency_duration",
  "steady_queue_jobs"."concurrency_discards", "steady_queue_jobs"."max_attempts",
  "steady_queue_jobs"."attempts", "steady_queue_jobs"."token",
  "steady_queue_jobs"."enqueued_at", "steady_queue_jobs"."scheduled_at",
  "steady_queue_jobs"."started_at", "steady_queue_jobs"."last_attempted_at",
  "steady_queue_jobs"."finished_at", "steady_queue_claimed_executions"."created_at",
  "steady_queue_claimed_executions"."job_id",
  "steady_queue_claimed_executions"."queue_name",
  "steady_queue_claimed_executions"."rank", "steady_queue_claimed_executions"."token",
  "steady_queue_claimed_executions"."process_id"
FROM "steady_queue_jobs"
LEFT OUTER
JOIN "steady_queue_claimed_executions" ON (
  "steady_queue_jobs"."id" = "steady_queue_claimed_executions"."job_id"
)
WHERE "steady_queue_jobs"."id" IN (:job_1);

COMMIT;

-- -------- a job that replaces another one

BEGIN;

SHOW default_transaction_isolation;

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

-- SELECT "steady_queue_jobs"."id", "steady_queue_jobs"."queue_name", ... as under "a duplicate"

INSERT INTO "steady_queue_unique_keys" ("key", "job_id", "expires_at", "ticket")
VALUES ('a', NULL, NULL, :token)
ON CONFLICT("key") DO UPDATE
SET "ticket" = EXCLUDED."ticket";

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

-- SELECT "steady_queue_jobs"."id", "steady_queue_jobs"."queue_name", ... as under "a duplicate"

SELECT "steady_queue_jobs"."id" AS "pk",
  "steady_queue_jobs"."concurrency_key" AS "concurrency_key",
  "steady_queue_jobs"."metadata" AS "metadata"
FROM "steady_queue_jobs"
WHERE "steady_queue_jobs"."id" IN (:job_1)
ORDER BY 1 ASC;

SELECT "steady_queue_scheduled_executions"."created_at",
  "steady_queue_scheduled_executions"."job_id",
  "steady_queue_scheduled_executions"."queue_name",
  "steady_queue_scheduled_executions"."rank", "steady_queue_scheduled_executions"."token",
  "steady_queue_scheduled_executions"."due_at",
  "steady_queue_scheduled_executions"."concurrency_key"
FROM "steady_queue_scheduled_executions"
WHERE "steady_queue_scheduled_executions"."job_id" = :job_1
FOR UPDATE;

SELECT "steady_queue_blocked_executions"."created_at",
  "steady_queue_blocked_executions"."job_id",
  "steady_queue_blocked_executions"."queue_name",
  "steady_queue_blocked_executions"."rank", "steady_queue_blocked_executions"."token",
  "steady_queue_blocked_executions"."concurrency_key"
FROM "steady_queue_blocked_executions"
WHERE "steady_queue_blocked_executions"."job_id" = :job_1
FOR UPDATE;

SELECT "steady_queue_ready_executions"."created_at",
  "steady_queue_ready_executions"."job_id", "steady_queue_ready_executions"."queue_name",
  "steady_queue_ready_executions"."rank", "steady_queue_ready_executions"."token",
  "steady_queue_ready_executions"."turn"
FROM "steady_queue_ready_executions"
WHERE "steady_queue_ready_executions"."job_id" = :job_1
FOR UPDATE;

DELETE FROM "steady_queue_ready_executions"
WHERE "steady_queue_ready_executions"."job_id" = :job_1;

SELECT "steady_queue_permits"."job_id", "steady_queue_permits"."key"
FROM "steady_queue_permits"
WHERE "steady_queue_permits"."job_id" IN (:job_1)
FOR UPDATE;

SELECT STATEMENT_TIMESTAMP();

UPDATE "steady_queue_jobs"
SET "queue_name" = 'mail', "task_path" = 'conformance.tasks.work',
  "backend_name" = 'default', "rank" = 0, "arguments" = '{}',
  "metadata" = '{"unique":{"__sq_tuple__":["a","finished",{"__sq_timedelta__":[0,0,0]},"replace"]}}',
  "max_attempts" = 1, "token" = 1, "enqueued_at" = ':time', "scheduled_at" = NULL,
  "concurrency_key" = NULL, "concurrency_limit" = NULL, "concurrency_duration" = NULL,
  "concurrency_discards" = false
WHERE "steady_queue_jobs"."id" = :job_1;

INSERT INTO "steady_queue_ready_executions" (
  "created_at", "job_id", "queue_name", "rank", "token", "turn"
)
VALUES (':time', :job_1, 'mail', 0, 1, :job_1.0)
RETURNING "steady_queue_ready_executions"."turn";

COMMIT;

-- -------- the end of a job

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
WITH given AS MATERIALIZED (
  SELECT job_id, token, 'finished' AS ending, $1::int AS attempts, $2::text AS worker_ids,
    $3::text AS errors, to_timestamp(started) AS started_at,
    to_timestamp(started) AS last_attempted_at, return_value, $4::boolean AS preserve
  FROM unnest(
    $5::bigint[], $6::bigint[], $7::float8[], $8::text[]
  ) AS outcome(job_id, token, started, return_value)
),
ended AS (
  DELETE FROM steady_queue_claimed_executions AS claim USING given
  WHERE claim.job_id = ANY(ARRAY(SELECT job_id FROM given))
    AND claim.job_id = given.job_id
    AND claim.token = given.token
  RETURNING given.*
),
updated AS (
  UPDATE steady_queue_jobs AS job
  SET attempts = ended.attempts, token = ended.token, worker_ids = ended.worker_ids,
    errors = ended.errors, return_value = ended.return_value, started_at = ended.started_at,
    last_attempted_at = ended.last_attempted_at,
    finished_at = CASE WHEN ending <> 'retried' THEN statement_timestamp() END
  FROM ended
  WHERE job.id = ANY(ARRAY(SELECT job_id FROM ended))
    AND job.id = ended.job_id
    AND ending <> 'released'
    AND (ending <> 'finished' OR preserve)
  RETURNING ended.*
),
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

SELECT current_setting('enable_seqscan'), current_setting('enable_bitmapscan'),
  current_setting('enable_nestloop'), current_setting('plan_cache_mode'),
  current_setting('jit');

PREPARE steady_queue_restore AS
SELECT set_config('enable_seqscan', 'on', true),
  set_config('enable_bitmapscan', 'on', true), set_config('enable_nestloop', 'on', true),
  set_config('plan_cache_mode', 'auto', true), set_config('jit', 'on', true);

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (1, NULL, NULL, true, '{:job_1}', '{:token}', '{NULL}', '{"1"}');

EXECUTE steady_queue_restore;

DELETE FROM "steady_queue_unique_keys"
WHERE "key" = 'a' AND ("job_id" = :job_1 OR "job_id" IS NULL);

COMMIT;

-- -------- the end of a job that keeps its key

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

-- PREPARE steady_queue_settings AS ... as under "the end of a job"

-- PREPARE steady_queue_0 AS ... as under "the end of a job"

SELECT current_setting('enable_seqscan'), current_setting('enable_bitmapscan'),
  current_setting('enable_nestloop'), current_setting('plan_cache_mode'),
  current_setting('jit');

PREPARE steady_queue_restore AS
SELECT set_config('enable_seqscan', 'on', true),
  set_config('enable_bitmapscan', 'on', true), set_config('enable_nestloop', 'on', true),
  set_config('plan_cache_mode', 'auto', true), set_config('jit', 'on', true);

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (1, NULL, NULL, true, '{:job_1}', '{:token}', '{NULL}', '{"1"}');

EXECUTE steady_queue_restore;

SELECT STATEMENT_TIMESTAMP();

UPDATE "steady_queue_unique_keys"
SET "expires_at" = ':time'
WHERE ("steady_queue_unique_keys"."job_id" = :job_1 AND "steady_queue_unique_keys"."key" = 'a');

COMMIT;

-- -------- the start of a job that gives its key up

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

SELECT "steady_queue_claimed_executions"."job_id" AS "pk",
  "steady_queue_claimed_executions"."token" AS "token"
FROM "steady_queue_claimed_executions"
WHERE "steady_queue_claimed_executions"."job_id" IN (:job_1);

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a')
ORDER BY "steady_queue_unique_keys"."key" ASC
FOR UPDATE SKIP LOCKED;

DELETE FROM "steady_queue_unique_keys"
WHERE "key" = 'a' AND ("job_id" = :job_1 OR "job_id" IS NULL);

SELECT STATEMENT_TIMESTAMP();

UPDATE "steady_queue_jobs"
SET "started_at" = ':time'
WHERE ("steady_queue_jobs"."id" IN (:job_1) AND "steady_queue_jobs"."started_at" IS NULL);

COMMIT;
