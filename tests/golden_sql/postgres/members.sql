-- -------- a job of a batch

BEGIN;

SHOW default_transaction_isolation;

SELECT "steady_queue_batches"."id", "steady_queue_batches"."kind",
  "steady_queue_batches"."description", "steady_queue_batches"."backend_name",
  "steady_queue_batches"."metadata", "steady_queue_batches"."callbacks",
  "steady_queue_batches"."member_id", "steady_queue_batches"."created_at",
  "steady_queue_batches"."started_at", "steady_queue_batches"."cancelled_at",
  "steady_queue_batches"."finished_at", "steady_queue_batches"."total",
  "steady_queue_batches"."failed"
FROM "steady_queue_batches"
WHERE "steady_queue_batches"."id" IN (:batch)
ORDER BY "steady_queue_batches"."id" DESC
FOR UPDATE;

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "metadata": "{\"batch\":{\"__sq_tuple__\":[:batch]}}"}]'
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

INSERT INTO "steady_queue_batch_members" ("batch_id", "job_id", "name", "state")
VALUES (:batch, :job_1, '', 0)
RETURNING "steady_queue_batch_members"."id";

COMMIT;

-- -------- a member that others are left of

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

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id",
  "steady_queue_batch_members"."job_id", "steady_queue_batch_members"."name",
  "steady_queue_batch_members"."state"
FROM "steady_queue_batch_members"
WHERE (
  "steady_queue_batch_members"."batch_id" = :batch AND "steady_queue_batch_members"."state" = 0
)
ORDER BY "steady_queue_batch_members"."id" DESC
LIMIT 1
FOR UPDATE SKIP LOCKED;

COMMIT;

-- -------- a member that others are left of, and a claim

-- PREPARE steady_queue_settings AS ... as under "a member that others are left of"

PREPARE steady_queue_0 AS
WITH given AS MATERIALIZED (
  SELECT job_id, token, 'finished' AS ending, $1::int AS attempts, $2::text AS worker_ids,
    $3::text AS errors, to_timestamp(started) AS started_at,
    to_timestamp(started) AS last_attempted_at, return_value, $4::boolean AS preserve
  FROM unnest(
    $5::bigint[], $6::bigint[], $7::float8[], $8::text[]
  ) AS outcome(job_id, token, started, return_value)
),
own AS MATERIALIZED (
  SELECT id, job_id, batch_id
  FROM steady_queue_batch_members
  WHERE job_id = ANY($9::bigint[]) AND state = 0
  ORDER BY job_id
  FOR UPDATE
),
declined AS MATERIALIZED (
  SELECT
  FROM (SELECT DISTINCT batch_id FROM own) AS whole
  LEFT JOIN LATERAL (
    SELECT other.id
    FROM steady_queue_batch_members AS other
    WHERE other.batch_id = whole.batch_id
      AND other.state = 0
      AND other.id <> ALL(ARRAY(SELECT id FROM own))
    ORDER BY other.id DESC
    LIMIT 1
    FOR UPDATE SKIP LOCKED
  ) AS pending ON true
  WHERE pending.id IS NULL
),
ended AS (
  DELETE FROM steady_queue_claimed_executions AS claim USING given
  WHERE claim.job_id = ANY(ARRAY(SELECT job_id FROM given))
    AND claim.job_id = given.job_id
    AND claim.token = given.token
    AND NOT EXISTS (SELECT FROM declined)
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
held AS (SELECT job_id FROM updated),
member AS (
  UPDATE steady_queue_batch_members AS member
  SET state = 1
  WHERE member.id = ANY(ARRAY(SELECT id FROM own))
    AND member.job_id = ANY(ARRAY(SELECT job_id FROM held))
),
picked AS MATERIALIZED (
  SELECT picked.tid
  FROM unnest(
    $10::text[], $11::int[], $12::float8[], $13::int[]
  ) WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE ready.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
      AND (ready."rank", ready.turn) >= (span."rank", span.turn)
      AND ready."rank" < span."end"
    ORDER BY ready."rank", ready.turn
    LIMIT $14
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $15 AND name = $16)
    AND NOT EXISTS (SELECT FROM declined)
  ORDER BY position
  LIMIT $14
),
taken AS (
  DELETE FROM steady_queue_ready_executions
  WHERE ctid = ANY(ARRAY(SELECT tid FROM picked))
  RETURNING job_id,
    (((token >> 32) + 1) << 32) + floor(random() * 4294967296)::bigint AS token, queue_name,
    "rank", turn AS turn
),
running AS (
  SELECT job_id
  FROM steady_queue_claimed_executions
  WHERE job_id = ANY(ARRAY(SELECT job_id FROM taken))
),
known AS MATERIALIZED (
  SELECT * FROM steady_queue_jobs WHERE id = ANY(ARRAY(SELECT job_id FROM taken))
),
job AS MATERIALIZED (
  SELECT taken.turn, taken."job_id", taken."token", taken."queue_name", taken."rank",
    task_path, backend_name, arguments, attempts, max_attempts, worker_ids, errors,
    date_part('epoch', enqueued_at) AS enqueued_at,
    date_part('epoch', started_at) AS started_at, concurrency_key, metadata
  FROM taken
  JOIN known ON known.id = taken.job_id
  WHERE finished_at IS NULL AND taken.job_id NOT IN (SELECT job_id FROM running)
),
claimed AS (
  INSERT INTO steady_queue_claimed_executions (
    job_id, token, queue_name, "rank", created_at, process_id
  )
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $15
  FROM job
),
summary AS (
  SELECT date_part('epoch', statement_timestamp()) AS claimed_at,
    CASE WHEN EXISTS (SELECT FROM declined) THEN 'null' ELSE (
      SELECT json_agg(job_id)::text FROM held
    ) END AS held,
    false AS has_waiting,
    (
      SELECT count(*) FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
    ) AS paused_queues,
    CASE WHEN $17 THEN (
      SELECT count(*)
      FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
      CROSS JOIN LATERAL (
        SELECT
        FROM steady_queue_ready_executions AS ready
        WHERE ready.queue_name >= paused.queue_name AND ready.queue_name <= paused.queue_name
        ORDER BY ready.queue_name, ready."rank", ready.turn
        LIMIT 100
      ) AS passed
    ) END AS jobs_of_paused,
    CASE WHEN $17 THEN pg_stat_get_dead_tuples(
      'steady_queue_ready_executions'::regclass
    ) END AS dead_rows
)
SELECT *
FROM summary
FULL JOIN job ON false;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  1, NULL, NULL, true, '{:job_1}', '{:token}', '{NULL}', '{"1"}', '{:job_1}', '{NULL}',
  '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false
);

-- -------- the last member

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

-- PREPARE steady_queue_settings AS ... as under "a member that others are left of"

-- PREPARE steady_queue_0 AS ... as under "a member that others are left of"

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

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id", ... as under "a member that others are left of"

SELECT "steady_queue_batches"."id", "steady_queue_batches"."kind",
  "steady_queue_batches"."description", "steady_queue_batches"."backend_name",
  "steady_queue_batches"."metadata", "steady_queue_batches"."callbacks",
  "steady_queue_batches"."member_id", "steady_queue_batches"."created_at",
  "steady_queue_batches"."started_at", "steady_queue_batches"."cancelled_at",
  "steady_queue_batches"."finished_at", "steady_queue_batches"."total",
  "steady_queue_batches"."failed"
FROM "steady_queue_batches"
WHERE "steady_queue_batches"."id" = :batch
FOR UPDATE;

SELECT 1 AS "a"
FROM "steady_queue_batch_members"
WHERE (
  "steady_queue_batch_members"."batch_id" = :batch AND "steady_queue_batch_members"."state" = 0
)
LIMIT 1;

SELECT "steady_queue_batch_members"."state" AS "state",
  COUNT("steady_queue_batch_members"."id") AS "pk__count"
FROM "steady_queue_batch_members"
WHERE "steady_queue_batch_members"."batch_id" = :batch
GROUP BY 1;

PREPARE steady_queue_1 AS
WITH given AS (
  SELECT *,
    CASE WHEN delay IS NULL THEN run_at WHEN delay > 0 THEN statement_timestamp() + delay * interval '1 microsecond' END AS due_at
  FROM json_to_recordset($1::json) AS job(
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

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"ordinal": 0, "queue_name": "on_success", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "metadata": "{\"batch\":{\"__sq_tuple__\":[:batch,false,true]}}"}, {"ordinal": 1, "queue_name": "on_finish", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "metadata": "{\"batch\":{\"__sq_tuple__\":[:batch,false,true]}}"}]'
);

EXECUTE steady_queue_restore;

SELECT STATEMENT_TIMESTAMP();

UPDATE "steady_queue_batches"
SET "finished_at" = ':time', "total" = 1, "failed" = 0,
  "callbacks" = '{"on_success":{"queue_name":"on_success","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_failure":{"queue_name":"on_failure","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_finish":{"queue_name":"on_finish","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"enqueued":[:job_2,:job_3]}'
WHERE "steady_queue_batches"."id" = :batch;

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- the last member, and a claim

-- PREPARE steady_queue_settings AS ... as under "a member that others are left of"

-- PREPARE steady_queue_0 AS ... as under "a member that others are left of, and a claim"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  1, NULL, NULL, true, '{:job_1}', '{:token}', '{NULL}', '{"1"}', '{:job_1}', '{NULL}',
  '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false
);

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_1 AS
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

EXECUTE steady_queue_1 (1, NULL, NULL, true, '{:job_1}', '{:token}', '{NULL}', '{"1"}');

EXECUTE steady_queue_restore;

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id", ... as under "a member that others are left of"

-- SELECT "steady_queue_batches"."id", "steady_queue_batches"."kind", ... as under "the last member"

-- SELECT 1 AS "a" ... as under "the last member"

SELECT "steady_queue_batch_members"."state" AS "state",
  COUNT("steady_queue_batch_members"."id") AS "pk__count"
FROM "steady_queue_batch_members"
WHERE "steady_queue_batch_members"."batch_id" = :batch
GROUP BY 1;

PREPARE steady_queue_2 AS
WITH given AS (
  SELECT *,
    CASE WHEN delay IS NULL THEN run_at WHEN delay > 0 THEN statement_timestamp() + delay * interval '1 microsecond' END AS due_at
  FROM json_to_recordset($1::json) AS job(
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

EXECUTE steady_queue_settings;

EXECUTE steady_queue_2 (
  '[{"ordinal": 0, "queue_name": "on_success", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "metadata": "{\"batch\":{\"__sq_tuple__\":[:batch,false,true]}}"}, {"ordinal": 1, "queue_name": "on_finish", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "metadata": "{\"batch\":{\"__sq_tuple__\":[:batch,false,true]}}"}]'
);

EXECUTE steady_queue_restore;

SELECT STATEMENT_TIMESTAMP();

UPDATE "steady_queue_batches"
SET "finished_at" = ':time', "total" = 1, "failed" = 0,
  "callbacks" = '{"on_success":{"queue_name":"on_success","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_failure":{"queue_name":"on_failure","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_finish":{"queue_name":"on_finish","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"enqueued":[:job_2,:job_3]}'
WHERE "steady_queue_batches"."id" = :batch;

PREPARE steady_queue_3 AS
WITH picked AS MATERIALIZED (
  SELECT picked.tid
  FROM unnest(
    $1::text[], $2::int[], $3::float8[], $4::int[]
  ) WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE ready.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
      AND (ready."rank", ready.turn) >= (span."rank", span.turn)
      AND ready."rank" < span."end"
    ORDER BY ready."rank", ready.turn
    LIMIT $5
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $6 AND name = $7)
  ORDER BY position
  LIMIT $5
),
taken AS (
  DELETE FROM steady_queue_ready_executions
  WHERE ctid = ANY(ARRAY(SELECT tid FROM picked))
  RETURNING job_id,
    (((token >> 32) + 1) << 32) + floor(random() * 4294967296)::bigint AS token, queue_name,
    "rank", turn AS turn
),
running AS (
  SELECT job_id
  FROM steady_queue_claimed_executions
  WHERE job_id = ANY(ARRAY(SELECT job_id FROM taken))
),
known AS MATERIALIZED (
  SELECT * FROM steady_queue_jobs WHERE id = ANY(ARRAY(SELECT job_id FROM taken))
),
job AS MATERIALIZED (
  SELECT taken.turn, taken."job_id", taken."token", taken."queue_name", taken."rank",
    task_path, backend_name, arguments, attempts, max_attempts, worker_ids, errors,
    date_part('epoch', enqueued_at) AS enqueued_at,
    date_part('epoch', started_at) AS started_at, concurrency_key, metadata
  FROM taken
  JOIN known ON known.id = taken.job_id
  WHERE finished_at IS NULL AND taken.job_id NOT IN (SELECT job_id FROM running)
),
claimed AS (
  INSERT INTO steady_queue_claimed_executions (
    job_id, token, queue_name, "rank", created_at, process_id
  )
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $6
  FROM job
),
summary AS (
  SELECT date_part('epoch', statement_timestamp()) AS claimed_at, NULL::text AS held,
    false AS has_waiting,
    (
      SELECT count(*) FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
    ) AS paused_queues,
    CASE WHEN $8 THEN (
      SELECT count(*)
      FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
      CROSS JOIN LATERAL (
        SELECT
        FROM steady_queue_ready_executions AS ready
        WHERE ready.queue_name >= paused.queue_name AND ready.queue_name <= paused.queue_name
        ORDER BY ready.queue_name, ready."rank", ready.turn
        LIMIT 100
      ) AS passed
    ) END AS jobs_of_paused,
    CASE WHEN $8 THEN pg_stat_get_dead_tuples(
      'steady_queue_ready_executions'::regclass
    ) END AS dead_rows
)
SELECT *
FROM summary
FULL JOIN job ON false;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_3 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false);

EXECUTE steady_queue_restore;

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- a member that failed, others are left, and a claim

-- PREPARE steady_queue_settings AS ... as under "a member that others are left of"

PREPARE steady_queue_0 AS
WITH given AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($1::json) AS outcome(
    job_id bigint, token bigint, ending text, queue_name text, "rank" smallint,
    attempts int, worker_ids text, errors text, started_at timestamptz,
    last_attempted_at timestamptz, return_value text, preserve boolean, delay bigint,
    exception_class text, message text, fingerprint text, concurrency_key text
  )
),
own AS MATERIALIZED (
  SELECT id, job_id, batch_id
  FROM steady_queue_batch_members
  WHERE job_id = ANY($2::bigint[]) AND state = 0
  ORDER BY job_id
  FOR UPDATE
),
declined AS MATERIALIZED (
  SELECT
  FROM (SELECT DISTINCT batch_id FROM own) AS whole
  LEFT JOIN LATERAL (
    SELECT other.id
    FROM steady_queue_batch_members AS other
    WHERE other.batch_id = whole.batch_id
      AND other.state = 0
      AND other.id <> ALL(ARRAY(SELECT id FROM own))
    ORDER BY other.id DESC
    LIMIT 1
    FOR UPDATE SKIP LOCKED
  ) AS pending ON true
  WHERE pending.id IS NULL
),
ended AS (
  DELETE FROM steady_queue_claimed_executions AS claim USING given
  WHERE claim.job_id = ANY(ARRAY(SELECT job_id FROM given))
    AND claim.job_id = given.job_id
    AND claim.token = given.token
    AND NOT EXISTS (SELECT FROM declined)
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
failed AS (
  INSERT INTO steady_queue_failed_executions (
    job_id, created_at, exception_class, message, fingerprint
  )
  SELECT job_id, statement_timestamp(), exception_class, message, fingerprint
  FROM updated
  WHERE ending = 'failed'
  ON CONFLICT (job_id) DO UPDATE
  SET created_at = excluded.created_at, exception_class = excluded.exception_class,
    message = excluded.message, fingerprint = excluded.fingerprint
),
held AS (SELECT job_id FROM updated),
member AS (
  UPDATE steady_queue_batch_members AS member
  SET state = ending.state
  FROM unnest($2::bigint[], $3::smallint[]) AS ending(job_id, state)
  WHERE member.id = ANY(ARRAY(SELECT id FROM own))
    AND member.job_id = ANY(ARRAY(SELECT job_id FROM held))
    AND member.job_id = ending.job_id
),
picked AS MATERIALIZED (
  SELECT picked.tid
  FROM unnest(
    $4::text[], $5::int[], $6::float8[], $7::int[]
  ) WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE ready.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
      AND (ready."rank", ready.turn) >= (span."rank", span.turn)
      AND ready."rank" < span."end"
    ORDER BY ready."rank", ready.turn
    LIMIT $8
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $9 AND name = $10)
    AND NOT EXISTS (SELECT FROM declined)
  ORDER BY position
  LIMIT $8
),
taken AS (
  DELETE FROM steady_queue_ready_executions
  WHERE ctid = ANY(ARRAY(SELECT tid FROM picked))
  RETURNING job_id,
    (((token >> 32) + 1) << 32) + floor(random() * 4294967296)::bigint AS token, queue_name,
    "rank", turn AS turn
),
running AS (
  SELECT job_id
  FROM steady_queue_claimed_executions
  WHERE job_id = ANY(ARRAY(SELECT job_id FROM taken))
),
known AS MATERIALIZED (
  SELECT * FROM steady_queue_jobs WHERE id = ANY(ARRAY(SELECT job_id FROM taken))
),
job AS MATERIALIZED (
  SELECT taken.turn, taken."job_id", taken."token", taken."queue_name", taken."rank",
    task_path, backend_name, arguments, attempts, max_attempts, worker_ids, errors,
    date_part('epoch', enqueued_at) AS enqueued_at,
    date_part('epoch', started_at) AS started_at, concurrency_key, metadata
  FROM taken
  JOIN known ON known.id = taken.job_id
  WHERE finished_at IS NULL AND taken.job_id NOT IN (SELECT job_id FROM running)
),
claimed AS (
  INSERT INTO steady_queue_claimed_executions (
    job_id, token, queue_name, "rank", created_at, process_id
  )
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $9
  FROM job
),
summary AS (
  SELECT date_part('epoch', statement_timestamp()) AS claimed_at,
    CASE WHEN EXISTS (SELECT FROM declined) THEN 'null' ELSE (
      SELECT json_agg(job_id)::text FROM held
    ) END AS held,
    false AS has_waiting,
    (
      SELECT count(*) FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
    ) AS paused_queues,
    CASE WHEN $11 THEN (
      SELECT count(*)
      FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
      CROSS JOIN LATERAL (
        SELECT
        FROM steady_queue_ready_executions AS ready
        WHERE ready.queue_name >= paused.queue_name AND ready.queue_name <= paused.queue_name
        ORDER BY ready.queue_name, ready."rank", ready.turn
        LIMIT 100
      ) AS passed
    ) END AS jobs_of_paused,
    CASE WHEN $11 THEN pg_stat_get_dead_tuples(
      'steady_queue_ready_executions'::regclass
    ) END AS dead_rows
)
SELECT *
FROM summary
FULL JOIN job ON false;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  '[{"job_id": :job_1, "token": :token, "ending": "failed", "queue_name": "default", "rank": 0, "delay": 0, "return_value": null, "exception_class": "builtins.ValueError", "message": "no", "fingerprint": "0123456789abcdef", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]',
  '{:job_1}', '{2}', '{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0',
  false
);

-- -------- a member that a job waits for

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

-- PREPARE steady_queue_settings AS ... as under "a member that others are left of"

-- PREPARE steady_queue_0 AS ... as under "a member that others are left of"

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

SELECT "steady_queue_batch_members"."id" AS "pk",
  "steady_queue_batch_members"."job_id" AS "job_id",
  "steady_queue_batch_members"."batch_id" AS "batch_id"
FROM "steady_queue_batch_members"
WHERE (
  "steady_queue_batch_members"."job_id" IN (:job_1) AND "steady_queue_batch_members"."state" = 0
)
ORDER BY 1 ASC;

UPDATE "steady_queue_batch_members"
SET "state" = 1
WHERE "steady_queue_batch_members"."id" IN (:member_1);

SELECT "steady_queue_dependencies"."id" AS "pk",
  "steady_queue_dependencies"."job_id" AS "job_id",
  "steady_queue_dependencies"."parent_id" AS "parent_id",
  "steady_queue_dependencies"."run_when" AS "run_when"
FROM "steady_queue_dependencies"
WHERE (
  "steady_queue_dependencies"."parent_id" IN (:member_1)
  AND "steady_queue_dependencies"."state" = 0
)
ORDER BY 1 ASC;

UPDATE "steady_queue_dependencies"
SET "state" = 1
WHERE "steady_queue_dependencies"."id" IN (:dependency);

-- SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id", ... as under "a member that others are left of"

SELECT "steady_queue_waiting_executions"."created_at",
  "steady_queue_waiting_executions"."job_id",
  "steady_queue_waiting_executions"."queue_name",
  "steady_queue_waiting_executions"."rank", "steady_queue_waiting_executions"."token",
  "steady_queue_waiting_executions"."width", "steady_queue_waiting_executions"."due_at",
  "steady_queue_waiting_executions"."delay",
  "steady_queue_waiting_executions"."concurrency_key"
FROM "steady_queue_waiting_executions"
WHERE "steady_queue_waiting_executions"."job_id" IN (:job_2)
ORDER BY "steady_queue_waiting_executions"."job_id" ASC;

SELECT "steady_queue_waiting_executions"."created_at",
  "steady_queue_waiting_executions"."job_id",
  "steady_queue_waiting_executions"."queue_name",
  "steady_queue_waiting_executions"."rank", "steady_queue_waiting_executions"."token",
  "steady_queue_waiting_executions"."width", "steady_queue_waiting_executions"."due_at",
  "steady_queue_waiting_executions"."delay",
  "steady_queue_waiting_executions"."concurrency_key"
FROM "steady_queue_waiting_executions"
WHERE "steady_queue_waiting_executions"."job_id" IN (:job_2)
ORDER BY "steady_queue_waiting_executions"."job_id" ASC
FOR UPDATE;

SELECT "steady_queue_dependencies"."job_id" AS "job_id"
FROM "steady_queue_dependencies"
WHERE (
  "steady_queue_dependencies"."job_id" IN (:job_2)
  AND "steady_queue_dependencies"."state" IN (2, 3)
);

SELECT STATEMENT_TIMESTAMP();

INSERT INTO "steady_queue_ready_executions" (
  "created_at", "job_id", "queue_name", "rank", "token", "turn"
)
VALUES (':time', :job_2, 'default', 0, 0, :job_2.0)
RETURNING "steady_queue_ready_executions"."turn";

DELETE FROM "steady_queue_waiting_executions"
WHERE "steady_queue_waiting_executions"."job_id" IN (:job_2);

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');
