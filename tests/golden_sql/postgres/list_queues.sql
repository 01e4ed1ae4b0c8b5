-- -------- all

PREPARE steady_queue_settings AS
SELECT set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('jit', 'off', true), set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_0 AS
SELECT found.name
FROM (SELECT $1::text AS low, $2::text AS high) AS wanted
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
) AS found;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 ('', NULL);

-- -------- by prefix

-- PREPARE steady_queue_settings AS ... as under "all"

-- PREPARE steady_queue_0 AS ... as under "all"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 ('mail', 'maim');
