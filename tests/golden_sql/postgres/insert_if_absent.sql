-- -------- an absent row

PREPARE steady_queue_settings AS
SELECT set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('jit', 'off', true), set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_0 AS
INSERT INTO "steady_queue_pauses" ("created_at", "queue_name")
VALUES ($1, $2)
ON CONFLICT ("queue_name") DO NOTHING
RETURNING "queue_name";

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (':time', 'mail');

-- -------- a row that is there

-- PREPARE steady_queue_settings AS ... as under "an absent row"

PREPARE steady_queue_0 AS
INSERT INTO "steady_queue_pauses" ("created_at", "queue_name")
VALUES ($1, $2)
ON CONFLICT ("queue_name") DO NOTHING
RETURNING "queue_name";

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (':time', 'mail');
