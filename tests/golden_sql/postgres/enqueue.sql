-- -------- one job

-- %(queue_name)s = 'default'
-- %(rank)s = 0
-- %(task_path)s = 'conformance.tasks.work'
-- %(backend_name)s = 'default'
-- %(max_attempts)s = 1
-- %(arguments)s = '{}'
WITH job AS (
  INSERT INTO steady_queue_jobs (
    queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts, token,
    enqueued_at
  )
  VALUES (
    %(queue_name)s, %(task_path)s, %(backend_name)s, %(rank)s, %(arguments)s,
    %(max_attempts)s, 0, 0, statement_timestamp()
  )
  RETURNING id, queue_name, "rank", enqueued_at
),
ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT id, queue_name, "rank", 0, enqueued_at, id
  FROM job
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
)
SELECT ARRAY[id] AS job_ids, date_part('epoch', statement_timestamp()) AS enqueued_at,
  pg_notify('steady_queue_ready', '') AS notification
FROM job;

-- -------- several jobs that are alike

-- %(queue_name)s = 'default'
-- %(rank)s = 0
-- %(task_path)s = 'conformance.tasks.work'
-- %(backend_name)s = 'default'
-- %(max_attempts)s = 1
-- %(arguments)s = '["{}", "{}"]'
WITH job AS (
  INSERT INTO steady_queue_jobs (
    queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts, token,
    enqueued_at
  )
  SELECT %(queue_name)s::text, %(task_path)s::text, %(backend_name)s::text,
    %(rank)s::smallint, arguments, %(max_attempts)s::smallint, 0, 0, statement_timestamp()
  FROM json_array_elements_text(%(arguments)s::json) WITH ORDINALITY AS call(arguments, ordinal)
  ORDER BY ordinal
  RETURNING id, queue_name, "rank", enqueued_at
),
ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT id, queue_name, "rank", 0, enqueued_at, id
  FROM job
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
)
SELECT array_agg(id) AS job_ids,
  date_part('epoch', statement_timestamp()) AS enqueued_at,
  pg_notify('steady_queue_ready', '') AS notification
FROM job;

-- -------- several jobs

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1}, {"ordinal": 1, "queue_name": "mail", "rank": -5, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1}]'
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

-- -------- a job with a delay

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "delay": 60000000}]'
-- WITH given AS ( ... as under "several jobs"

-- -------- a job for an instant

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "run_at": ":time"}]'
-- WITH given AS ( ... as under "several jobs"

-- -------- a job with a limit

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "key": "key", "to": 1, "duration": 180000000, "discards": false}]'
-- %(takes)s = true
WITH given AS MATERIALIZED (
  SELECT job.*, moment.due_at, "key" IS NOT NULL AND due_at IS NULL AS is_limited
  FROM json_to_recordset(%(jobs)s::json) AS job(
    ordinal int, queue_name text, "rank" smallint, task_path text, backend_name text,
    arguments text, max_attempts smallint, run_at timestamptz, delay bigint, "key" text,
    "to" int, duration bigint, discards boolean, metadata text
  ),
    LATERAL (
      SELECT CASE WHEN CASE WHEN delay IS NULL THEN run_at WHEN delay > 0 THEN statement_timestamp() + delay * interval '1 microsecond' END > statement_timestamp() THEN CASE WHEN delay IS NULL THEN run_at WHEN delay > 0 THEN statement_timestamp() + delay * interval '1 microsecond' END END AS due_at
    ) AS moment
),
touched AS (
  INSERT INTO steady_queue_semaphores AS known ("key", value, "limit")
  SELECT "key",
    CASE WHEN (
      SELECT true FROM steady_queue_semaphores AS existing WHERE existing."key" = given."key"
    ) THEN -1 ELSE "to" - 1 - (
      SELECT count(*) FROM steady_queue_permits AS permit WHERE permit."key" = given."key"
    ) END,
    "to"
  FROM given
  WHERE is_limited AND %(takes)s
  ORDER BY "key" COLLATE "C"
  ON CONFLICT ("key") DO UPDATE
  SET value = known.value - known."limit" + excluded."limit" - 1, "limit" = excluded."limit"
  WHERE known.value > 0 AND known.value - known."limit" + excluded."limit" > 0
  RETURNING "key", value
),
taken AS MATERIALIZED (SELECT "key" FROM touched WHERE value >= 0),
doubtful AS MATERIALIZED (
  SELECT ordinal, "key", "to"
  FROM given
  WHERE is_limited
    AND "key" NOT IN (SELECT "key" FROM taken)
    AND (
      NOT %(takes)s OR "key" IN (SELECT "key" FROM touched) OR "to" <> (
        SELECT "limit" FROM steady_queue_semaphores AS known WHERE known."key" = given."key"
      )
    )
),
refused AS MATERIALIZED (
  SELECT ordinal
  FROM given
  WHERE is_limited
    AND discards
    AND "key" NOT IN (SELECT "key" FROM taken)
    AND ordinal NOT IN (SELECT ordinal FROM doubtful)
),
job AS (
  INSERT INTO steady_queue_jobs (
    queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts, token,
    enqueued_at, scheduled_at, concurrency_key, concurrency_limit, concurrency_duration,
    concurrency_discards, metadata
  )
  SELECT queue_name, task_path, backend_name, "rank", arguments, max_attempts, 0, 0,
    statement_timestamp(), COALESCE(due_at, run_at), "key", "to",
    duration * interval '1 microsecond', COALESCE(discards, false), metadata
  FROM given
  WHERE ordinal NOT IN (SELECT ordinal FROM refused)
  ORDER BY ordinal
  RETURNING id, queue_name, "rank", enqueued_at, scheduled_at, concurrency_key,
    concurrency_key IS NULL OR concurrency_key IN (SELECT "key" FROM taken) AS may_run
),
ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT id, queue_name, "rank", 0, enqueued_at, id
  FROM job
  WHERE NOT COALESCE(scheduled_at > enqueued_at, false) AND may_run
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
),
permit AS (
  INSERT INTO steady_queue_permits (job_id, "key")
  SELECT id, concurrency_key
  FROM job
  WHERE NOT COALESCE(scheduled_at > enqueued_at, false)
    AND may_run
    AND concurrency_key IS NOT NULL
  ON CONFLICT (job_id) DO UPDATE
  SET "key" = excluded."key"
),
blocked AS (
  INSERT INTO steady_queue_blocked_executions (
    job_id, queue_name, "rank", token, created_at, concurrency_key
  )
  SELECT id, queue_name, "rank", 0, enqueued_at, concurrency_key
  FROM job
  WHERE NOT COALESCE(scheduled_at > enqueued_at, false) AND NOT may_run
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, concurrency_key = excluded.concurrency_key
),
scheduled AS (
  INSERT INTO steady_queue_scheduled_executions (
    job_id, queue_name, "rank", token, created_at, due_at, concurrency_key
  )
  SELECT id, queue_name, "rank", 0, enqueued_at, scheduled_at, concurrency_key
  FROM job
  WHERE COALESCE(scheduled_at > enqueued_at, false)
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, due_at = excluded.due_at,
    concurrency_key = excluded.concurrency_key
)
SELECT date_part('epoch', statement_timestamp()) AS enqueued_at,
  ARRAY(SELECT id FROM job) AS job_ids, ARRAY(SELECT ordinal FROM refused) AS refused,
  (SELECT json_object_agg("key", "to" ORDER BY ordinal)::text FROM doubtful) AS doubtful;

-- -------- jobs of one key

BEGIN;

SHOW default_transaction_isolation;

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "key": "key", "to": 2, "duration": 180000000, "discards": false}, {"ordinal": 1, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "key": "key", "to": 2, "duration": 180000000, "discards": false}, {"ordinal": 2, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "key": "key", "to": 2, "duration": 180000000, "discards": false}]'
-- %(takes)s = false
-- WITH given AS MATERIALIZED ( ... as under "a job with a limit"

-- %(keys)s = ARRAY['key']
-- %(limits)s = ARRAY[2]
INSERT INTO steady_queue_semaphores AS known ("key", value, "limit")
SELECT "key",
  CASE WHEN (
    SELECT true FROM steady_queue_semaphores AS existing WHERE existing."key" = given."key"
  ) THEN 0 ELSE "limit" - (
    SELECT count(*) FROM steady_queue_permits AS permit WHERE permit."key" = given."key"
  ) END,
  "limit"
FROM unnest(%(keys)s::text[], %(limits)s::int[]) AS given("key", "limit")
ORDER BY "key" COLLATE "C"
ON CONFLICT ("key") DO UPDATE
SET value = known.value - known."limit" + excluded."limit", "limit" = excluded."limit"
RETURNING "key";

-- %(keys)s = ARRAY['key']
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
  WHERE known."key" = ANY(%(keys)s) AND known."key" = semaphore."key"
)
SELECT count(*)
FROM admitted;

COMMIT;

-- -------- a job that rather is not run than waits

-- %(jobs)s = '[{"ordinal": 0, "queue_name": "default", "rank": 0, "task_path": "conformance.tasks.work", "backend_name": "default", "arguments": "{}", "max_attempts": 1, "key": "key", "to": 1, "duration": 180000000, "discards": true}]'
-- %(takes)s = true
-- WITH given AS MATERIALIZED ( ... as under "a job with a limit"
