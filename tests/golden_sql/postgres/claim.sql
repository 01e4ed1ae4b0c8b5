-- -------- all queues

PREPARE steady_queue_settings AS
SELECT set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('jit', 'off', true), set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_0 AS
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

EXECUTE steady_queue_0 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false);

-- -------- one queue

-- PREPARE steady_queue_settings AS ... as under "all queues"

PREPARE steady_queue_0 AS
WITH picked AS MATERIALIZED (
  SELECT picked.tid
  FROM unnest(
    $1::text[], $2::int[], $3::float8[], $4::int[]
  ) WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE (
      ready.queue_name, ready."rank", ready.turn
    ) >= (span.queue_name, span."rank", span.turn)
      AND (ready.queue_name, ready."rank") < (span.queue_name, span."end")
    ORDER BY ready.queue_name, ready."rank", ready.turn
    LIMIT $5
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $6 AND name = $7)
    AND span.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
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

EXECUTE steady_queue_0 (
  '{"mail"}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false
);

-- -------- queues by prefix

-- PREPARE steady_queue_settings AS ... as under "all queues"

PREPARE steady_queue_0 AS
WITH picked AS MATERIALIZED (
  SELECT picked.tid
  FROM (
    SELECT *
    FROM (
      SELECT found.name, min(wanted.position) AS position
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted(low, high, position)
      CROSS JOIN LATERAL (
        WITH RECURSIVE queue(name) AS (
          (
            SELECT queue_name
            FROM steady_queue_ready_executions
            WHERE queue_name >= wanted.low
            ORDER BY queue_name
            LIMIT 1
          )
          UNION ALL
          SELECT (
            SELECT queue_name
            FROM steady_queue_ready_executions
            WHERE queue_name > queue.name
            ORDER BY queue_name
            LIMIT 1
          )
          FROM queue
          WHERE queue.name < wanted.high OR queue.name IS NOT NULL AND wanted.high IS NULL
        )
        SELECT name
        FROM queue
        WHERE name < wanted.high OR name IS NOT NULL AND wanted.high IS NULL
      ) AS found
      WHERE found.name NOT IN (SELECT queue_name FROM steady_queue_pauses)
      GROUP BY found.name
    ) AS matching
    ORDER BY position, name
  ) AS queue
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE ready.queue_name >= queue.name AND ready.queue_name <= queue.name
    ORDER BY ready.queue_name, ready."rank", ready.turn
    LIMIT $3
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $4 AND name = $5)
  ORDER BY queue.position, queue.name
  LIMIT $3
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
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $4
  FROM job
),
summary AS (
  SELECT date_part('epoch', statement_timestamp()) AS claimed_at, NULL::text AS held,
    false AS has_waiting,
    (
      SELECT count(*) FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
    ) AS paused_queues,
    CASE WHEN $6 THEN (
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
    CASE WHEN $6 THEN pg_stat_get_dead_tuples(
      'steady_queue_ready_executions'::regclass
    ) END AS dead_rows
)
SELECT *
FROM summary
FULL JOIN job ON false;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 ('{"mail"}', '{"maim"}', 2, :process, 'worker-0', false);

-- -------- all queues but some

-- PREPARE steady_queue_settings AS ... as under "all queues"

PREPARE steady_queue_0 AS
WITH picked AS MATERIALIZED (
  SELECT picked.tid
  FROM unnest(
    $1::text[], $2::int[], $3::float8[], $4::int[]
  ) WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)
  CROSS JOIN LATERAL (
    SELECT ready.ctid AS tid
    FROM steady_queue_ready_executions AS ready
    WHERE ready.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
      AND NOT (ready.queue_name >= $5::text AND ready.queue_name < $6::text)
      AND (ready."rank", ready.turn) >= (span."rank", span.turn)
      AND ready."rank" < span."end"
    ORDER BY ready."rank", ready.turn
    LIMIT $7
    FOR UPDATE SKIP LOCKED
  ) AS picked
  WHERE EXISTS (SELECT FROM steady_queue_processes WHERE id = $8 AND name = $9)
  ORDER BY position
  LIMIT $7
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
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $8
  FROM job
),
summary AS (
  SELECT date_part('epoch', statement_timestamp()) AS claimed_at, NULL::text AS held,
    false AS has_waiting,
    (
      SELECT count(*) FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
    ) AS paused_queues,
    CASE WHEN $10 THEN (
      SELECT (
        SELECT count(*)
        FROM (SELECT queue_name FROM steady_queue_pauses) AS paused
        CROSS JOIN LATERAL (
          SELECT
          FROM steady_queue_ready_executions AS ready
          WHERE ready.queue_name >= paused.queue_name AND ready.queue_name <= paused.queue_name
          ORDER BY ready.queue_name, ready."rank", ready.turn
          LIMIT 100
        ) AS passed
      ) + (
        SELECT count(*)
        FROM (
          SELECT
          FROM steady_queue_ready_executions AS ready
          WHERE ready.queue_name >= $5::text AND ready.queue_name < $6::text
          LIMIT 100
        ) AS passed
      )
    ) END AS jobs_of_paused,
    CASE WHEN $10 THEN pg_stat_get_dead_tuples(
      'steady_queue_ready_executions'::regclass
    ) END AS dead_rows
)
SELECT *
FROM summary
FULL JOIN job ON false;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  '{NULL}', '{-32768}', '{0.0}', '{32768}', 'mail', 'maim', 2, :process, 'worker-0', false
);

-- -------- all queues, one of them paused

-- PREPARE steady_queue_settings AS ... as under "all queues"

-- PREPARE steady_queue_0 AS ... as under "all queues"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false);

-- -------- nothing is ready

-- PREPARE steady_queue_settings AS ... as under "all queues"

-- PREPARE steady_queue_0 AS ... as under "all queues"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false);

-- -------- nothing is ready, twice

-- PREPARE steady_queue_settings AS ... as under "all queues"

-- PREPARE steady_queue_0 AS ... as under "all queues"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', false);

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 ('{NULL}', '{-32768}', '{0.0}', '{32768}', 2, :process, 'worker-0', true);
