-- -------- finished

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
held AS (SELECT job_id FROM updated),
picked AS MATERIALIZED (
  SELECT picked.tid
  FROM unnest(
    $9::text[], $10::int[], $11::float8[], $12::int[]
  ) WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE ready.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
      AND (ready."rank", ready.turn) >= (span."rank", span.turn)
      AND ready."rank" < span."end"
    ORDER BY ready."rank", ready.turn
    LIMIT $13
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $14 AND name = $15)
  ORDER BY position
  LIMIT $13
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
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $14
  FROM job
),
summary AS (
  SELECT date_part('epoch', statement_timestamp()) AS claimed_at,
    (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting,
    (
      SELECT count(*) FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
    ) AS paused_queues,
    CASE WHEN $16 THEN (
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
    CASE WHEN $16 THEN pg_stat_get_dead_tuples(
      'steady_queue_ready_executions'::regclass
    ) END AS dead_rows
)
SELECT *
FROM summary
FULL JOIN job ON false;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  1, NULL, NULL, true, '{:job_1}', '{:token}', '{NULL}', '{"1"}', '{NULL}', '{-32768}',
  '{0.0}', '{32768}', 2, :process, 'worker-0', false
);

-- -------- finished, with a limit

BEGIN;

-- PREPARE steady_queue_settings AS ... as under "finished"

PREPARE steady_queue_0 AS
SELECT "key"
FROM steady_queue_semaphores
WHERE "key" = ANY($1)
ORDER BY "key"
FOR UPDATE;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (ARRAY['key']);

PREPARE steady_queue_1 AS
WITH given AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($1::json) AS outcome(
    job_id bigint, token bigint, ending text, queue_name text, "rank" smallint,
    attempts int, worker_ids text, errors text, started_at timestamptz,
    last_attempted_at timestamptz, return_value text, preserve boolean, delay bigint,
    exception_class text, message text, fingerprint text, concurrency_key text
  )
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
ended_permit AS (
  DELETE FROM steady_queue_permits
  WHERE job_id = ANY(ARRAY(SELECT job_id FROM ended WHERE ending <> 'released'))
  RETURNING "key"
),
counted AS (
  UPDATE steady_queue_semaphores AS known
  SET value = LEAST(
    "limit", value + (SELECT count(*) FROM ended_permit WHERE "key" = known."key")
  )
  WHERE "key" = ANY(ARRAY(SELECT "key" FROM ended_permit))
),
held AS (SELECT job_id FROM updated),
picked AS MATERIALIZED (
  SELECT picked.tid
  FROM unnest(
    $2::text[], $3::int[], $4::float8[], $5::int[]
  ) WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE ready.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
      AND (ready."rank", ready.turn) >= (span."rank", span.turn)
      AND ready."rank" < span."end"
    ORDER BY ready."rank", ready.turn
    LIMIT $6
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $7 AND name = $8)
    AND NOT EXISTS (
      SELECT
      FROM steady_queue_blocked_executions
      WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
    )
  ORDER BY position
  LIMIT $6
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
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $7
  FROM job
),
summary AS (
  SELECT date_part('epoch', statement_timestamp()) AS claimed_at,
    (SELECT json_agg(job_id)::text FROM held) AS held,
    EXISTS (
      SELECT
      FROM steady_queue_blocked_executions
      WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
    ) AS has_waiting,
    (
      SELECT count(*) FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
    ) AS paused_queues,
    CASE WHEN $9 THEN (
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
    CASE WHEN $9 THEN pg_stat_get_dead_tuples(
      'steady_queue_ready_executions'::regclass
    ) END AS dead_rows
)
SELECT *
FROM summary
FULL JOIN job ON false;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "finished", "concurrency_key": "key", "preserve": true, "return_value": "1", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]',
  '{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false
);

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

EXECUTE steady_queue_3 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', true);

COMMIT;

-- -------- released

BEGIN;

-- PREPARE steady_queue_settings AS ... as under "finished"

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
ended AS (
  DELETE FROM steady_queue_claimed_executions AS claim USING given
  WHERE claim.job_id = ANY(ARRAY(SELECT job_id FROM given))
    AND claim.job_id = given.job_id
    AND claim.token = given.token
  RETURNING given.*
),
released AS (
  SELECT ended.*
  FROM ended
  JOIN steady_queue_jobs AS job ON job.id = ANY(ARRAY(SELECT job_id FROM ended))
    AND job.id = ended.job_id
  WHERE ending = 'released'
),
released_ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), job_id
  FROM released
  WHERE (
    concurrency_key IS NULL OR EXISTS (
      SELECT FROM steady_queue_permits AS permit WHERE permit.job_id = released.job_id
    )
  )
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
),
held AS (SELECT job_id FROM released)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  '[{"job_id": :job_1, "token": :token, "ending": "released", "queue_name": "default", "rank": 0, "delay": 0, "return_value": null, "exception_class": "", "message": ""}]'
);

PREPARE steady_queue_1 AS
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

EXECUTE steady_queue_1 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false);

COMMIT;

-- -------- released, with a limit

BEGIN;

-- PREPARE steady_queue_settings AS ... as under "finished"

-- PREPARE steady_queue_0 AS ... as under "finished, with a limit"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (ARRAY['key']);

PREPARE steady_queue_1 AS
WITH given AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($1::json) AS outcome(
    job_id bigint, token bigint, ending text, queue_name text, "rank" smallint,
    attempts int, worker_ids text, errors text, started_at timestamptz,
    last_attempted_at timestamptz, return_value text, preserve boolean, delay bigint,
    exception_class text, message text, fingerprint text, concurrency_key text
  )
),
ended AS (
  DELETE FROM steady_queue_claimed_executions AS claim USING given
  WHERE claim.job_id = ANY(ARRAY(SELECT job_id FROM given))
    AND claim.job_id = given.job_id
    AND claim.token = given.token
  RETURNING given.*
),
released AS (
  SELECT ended.*
  FROM ended
  JOIN steady_queue_jobs AS job ON job.id = ANY(ARRAY(SELECT job_id FROM ended))
    AND job.id = ended.job_id
  WHERE ending = 'released'
),
released_ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), job_id
  FROM released
  WHERE (
    concurrency_key IS NULL OR EXISTS (
      SELECT FROM steady_queue_permits AS permit WHERE permit.job_id = released.job_id
    )
  )
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
),
released_blocked AS (
  INSERT INTO steady_queue_blocked_executions (
    job_id, queue_name, "rank", token, created_at, concurrency_key
  )
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), concurrency_key
  FROM released
  WHERE NOT (
    (
      concurrency_key IS NULL OR EXISTS (
        SELECT FROM steady_queue_permits AS permit WHERE permit.job_id = released.job_id
      )
    )
  )
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, concurrency_key = excluded.concurrency_key
),
held AS (SELECT job_id FROM released)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "released", "concurrency_key": "key", "queue_name": "default", "rank": 0, "delay": 0, "return_value": null, "exception_class": "", "message": ""}]'
);

-- PREPARE steady_queue_2 AS ... as under "finished, with a limit"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_2 (ARRAY['key']);

-- PREPARE steady_queue_3 AS ... as under "finished, with a limit"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_3 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false);

COMMIT;
