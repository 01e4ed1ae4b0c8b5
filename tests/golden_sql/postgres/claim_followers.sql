-- -------- nobody waits

PREPARE steady_queue_settings AS
SELECT set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('jit', 'off', true), set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

PREPARE steady_queue_0 AS
SELECT wanted."key"
FROM unnest($1::text[]) AS wanted("key")
CROSS JOIN LATERAL (
  SELECT
  FROM steady_queue_blocked_executions
  WHERE concurrency_key = wanted."key"
  ORDER BY "rank", job_id
  LIMIT 1
) AS waiting;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (ARRAY['key']);

-- -------- a job waits

-- PREPARE steady_queue_settings AS ... as under "nobody waits"

-- PREPARE steady_queue_0 AS ... as under "nobody waits"

EXECUTE steady_queue_settings;

EXECUTE steady_queue_0 (ARRAY['key']);

BEGIN;

PREPARE steady_queue_1 AS
SELECT "key"
FROM steady_queue_semaphores
WHERE "key" = ANY($1)
ORDER BY "key"
FOR UPDATE SKIP LOCKED;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_1 (ARRAY['key']);

PREPARE steady_queue_2 AS
WITH holder AS MATERIALIZED (
  SELECT *
  FROM unnest(
    $1::text[], $2::text[], $3::bigint[], $4::bigint[]
  ) AS holder("key", queue_name, job_id, token)
),
held AS MATERIALIZED (
  SELECT claim.job_id, claim.token, permit."key"
  FROM steady_queue_claimed_executions AS claim
  JOIN steady_queue_permits AS permit ON permit.job_id = claim.job_id
  WHERE claim.job_id = ANY($3) AND permit.job_id = ANY($3) AND claim.process_id = $5
),
chain AS MATERIALIZED (
  SELECT holder."key", min(holder.queue_name) AS queue_name, count(*) * $6 AS wanted
  FROM holder
  LEFT JOIN held ON held.job_id = holder.job_id
    AND held.token = holder.token
    AND held."key" = holder."key"
  WHERE holder.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
  GROUP BY holder."key" HAVING count(*) = count(held.job_id)
    AND (
      SELECT remaining
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
      WHERE known."key" = holder."key"
    ) >= 0
),
next AS MATERIALIZED (
  SELECT chain."key", chain.queue_name AS wanted_queue, first.*
  FROM chain
  CROSS JOIN LATERAL (
    SELECT waiting.ctid AS tid, job_id, queue_name, "rank"
    FROM steady_queue_blocked_executions AS waiting
    WHERE waiting.concurrency_key = chain."key"
    ORDER BY waiting."rank", waiting.job_id
    LIMIT chain.wanted
  ) AS first
),
fit AS MATERIALIZED (
  SELECT id, concurrency_key
  FROM steady_queue_jobs
  WHERE id = ANY(ARRAY(SELECT job_id FROM next))
    AND finished_at IS NULL
    AND id <> ALL(
      ARRAY(
        SELECT job_id
        FROM steady_queue_claimed_executions
        WHERE job_id = ANY(ARRAY(SELECT job_id FROM next))
      )
    )
),
picked AS MATERIALIZED (
  SELECT tid
  FROM (
    SELECT next.tid,
      bool_and(
        next.queue_name = wanted_queue AND fit.id IS NOT NULL
      ) OVER (PARTITION BY "key" ORDER BY "rank", job_id) AS belongs
    FROM next
    LEFT JOIN fit ON fit.id = next.job_id AND fit.concurrency_key = next."key"
  ) AS checked
  WHERE belongs
),
taken AS (
  DELETE FROM steady_queue_blocked_executions
  WHERE ctid = ANY(ARRAY(SELECT tid FROM picked))
  RETURNING job_id,
    (((token >> 32) + 1) << 32) + floor(random() * 4294967296)::bigint AS token, queue_name,
    "rank", job_id AS turn
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
  SELECT job_id, token, queue_name, "rank", statement_timestamp(), $5
  FROM job
)
SELECT job.*, date_part('epoch', statement_timestamp()) AS claimed_at
FROM job
ORDER BY "rank", job_id;

EXECUTE steady_queue_settings;

EXECUTE steady_queue_2 (
  ARRAY['key'], ARRAY['default'], ARRAY[:job_1], ARRAY[:token], :process, 5
);

COMMIT;
