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
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (1, NULL, NULL, true, '{:job_1}', '{:token}', '{NULL}', '{"1"}');

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
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held,
  EXISTS (
    SELECT
    FROM steady_queue_blocked_executions
    WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
  ) AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "finished", "concurrency_key": "key", "preserve": true, "return_value": "1", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- finished, and not kept

-- PREPARE steady_queue_settings AS ... as under "finished"

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
deleted AS (
  DELETE FROM steady_queue_jobs AS job USING ended
  WHERE job.id = ANY(ARRAY(SELECT job_id FROM ended))
    AND job.id = ended.job_id
    AND ending = 'finished'
    AND NOT preserve
  RETURNING ended.job_id
),
held AS (SELECT job_id FROM deleted)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (1, NULL, NULL, false, '{:job_1}', '{:token}', '{NULL}', '{"1"}');

-- -------- finished, and not kept, with a limit

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
deleted AS (
  DELETE FROM steady_queue_jobs AS job USING ended
  WHERE job.id = ANY(ARRAY(SELECT job_id FROM ended))
    AND job.id = ended.job_id
    AND ending = 'finished'
    AND NOT preserve
  RETURNING ended.job_id
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
held AS (SELECT job_id FROM deleted)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held,
  EXISTS (
    SELECT
    FROM steady_queue_blocked_executions
    WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
  ) AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "finished", "concurrency_key": "key", "preserve": false, "return_value": "1", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- failed

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
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  '[{"job_id": :job_1, "token": :token, "ending": "failed", "queue_name": "default", "rank": 0, "delay": 0, "return_value": null, "exception_class": "builtins.ValueError", "message": "no", "fingerprint": "0123456789abcdef", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

-- -------- failed, with a limit

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
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held,
  EXISTS (
    SELECT
    FROM steady_queue_blocked_executions
    WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
  ) AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "failed", "concurrency_key": "key", "queue_name": "default", "rank": 0, "delay": 0, "return_value": null, "exception_class": "builtins.ValueError", "message": "no", "fingerprint": "0123456789abcdef", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- retried later

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
scheduled AS (
  INSERT INTO steady_queue_scheduled_executions (
    job_id, queue_name, "rank", token, created_at, due_at, concurrency_key
  )
  SELECT job_id, queue_name, "rank", token, statement_timestamp(),
    statement_timestamp() + delay * interval '1 microsecond', concurrency_key
  FROM updated
  WHERE ending = 'retried' AND delay > 0
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, due_at = excluded.due_at,
    concurrency_key = excluded.concurrency_key
),
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  '[{"job_id": :job_1, "token": :token, "ending": "retried", "queue_name": "default", "rank": 0, "delay": 60000000, "return_value": null, "exception_class": "", "message": "", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

-- -------- retried later, with a limit

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
scheduled AS (
  INSERT INTO steady_queue_scheduled_executions (
    job_id, queue_name, "rank", token, created_at, due_at, concurrency_key
  )
  SELECT job_id, queue_name, "rank", token, statement_timestamp(),
    statement_timestamp() + delay * interval '1 microsecond', concurrency_key
  FROM updated
  WHERE ending = 'retried' AND delay > 0
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, due_at = excluded.due_at,
    concurrency_key = excluded.concurrency_key
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
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held,
  EXISTS (
    SELECT
    FROM steady_queue_blocked_executions
    WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
  ) AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "retried", "concurrency_key": "key", "queue_name": "default", "rank": 0, "delay": 60000000, "return_value": null, "exception_class": "", "message": "", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- retried at once

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
ready AS (
  INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), job_id
  FROM updated
  WHERE ending = 'retried' AND delay <= 0 AND concurrency_key IS NULL
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, turn = excluded.turn
),
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held, false AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (
  '[{"job_id": :job_1, "token": :token, "ending": "retried", "queue_name": "default", "rank": 0, "delay": 0, "return_value": null, "exception_class": "", "message": "", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

-- -------- retried at once, with a limit

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
blocked AS (
  INSERT INTO steady_queue_blocked_executions (
    job_id, queue_name, "rank", token, created_at, concurrency_key
  )
  SELECT job_id, queue_name, "rank", token, statement_timestamp(), concurrency_key
  FROM updated
  WHERE ending = 'retried' AND delay <= 0 AND concurrency_key IS NOT NULL
  ON CONFLICT (job_id) DO UPDATE
  SET queue_name = excluded.queue_name, "rank" = excluded."rank", token = excluded.token,
    created_at = excluded.created_at, concurrency_key = excluded.concurrency_key
),
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held,
  EXISTS (
    SELECT
    FROM steady_queue_blocked_executions
    WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
  ) AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "retried", "concurrency_key": "key", "queue_name": "default", "rank": 0, "delay": 0, "return_value": null, "exception_class": "", "message": "", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
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

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- released

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

-- PREPARE steady_queue_2 AS ... as under "retried at once, with a limit"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_2 (ARRAY['key']);

COMMIT;

SELECT set_config('synchronous_commit', 'off', true), pg_notify('steady_queue_ready', '');

-- -------- finished, with an heir

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
    exception_class text, message text, fingerprint text, concurrency_key text, heir bigint,
    heir_token bigint
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
heir AS MATERIALIZED (
  SELECT ended.job_id, ended.heir
  FROM ended
  JOIN steady_queue_claimed_executions AS claim ON claim.job_id = ANY(ARRAY(SELECT heir FROM ended))
    AND claim.job_id = ended.heir
    AND claim.token = ended.heir_token
  WHERE ending <> 'released'
    AND ended.heir <> ALL(
      ARRAY(
        SELECT job_id
        FROM ended
        UNION ALL
        SELECT job_id
        FROM steady_queue_permits
        WHERE job_id = ANY(ARRAY(SELECT heir FROM ended))
      )
    )
),
passed_permit AS (
  UPDATE steady_queue_permits AS permit
  SET job_id = heir.heir
  FROM heir
  WHERE permit.job_id = ANY(ARRAY(SELECT job_id FROM heir)) AND permit.job_id = heir.job_id
),
ended_permit AS (
  DELETE FROM steady_queue_permits
  WHERE job_id = ANY(
    ARRAY(SELECT job_id FROM ended WHERE ending <> 'released' EXCEPT SELECT job_id FROM heir)
  )
  RETURNING "key"
),
counted AS (
  UPDATE steady_queue_semaphores AS known
  SET value = LEAST(
    "limit", value + (SELECT count(*) FROM ended_permit WHERE "key" = known."key")
  )
  WHERE "key" = ANY(ARRAY(SELECT "key" FROM ended_permit))
),
held AS (SELECT job_id FROM updated)
SELECT (SELECT json_agg(job_id)::text FROM held) AS held,
  EXISTS (
    SELECT
    FROM steady_queue_blocked_executions
    WHERE concurrency_key = ANY(ARRAY(SELECT "key" FROM ended_permit))
  ) AS has_waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (
  '[{"job_id": :job_1, "token": :token, "ending": "finished", "concurrency_key": "key", "heir": :job_2, "heir_token": :token, "preserve": true, "return_value": "1", "attempts": 1, "worker_ids": null, "errors": null, "last_attempted_at": null, "started_at": null}]'
);

COMMIT;
