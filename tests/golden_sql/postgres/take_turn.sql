-- -------- a job of a fair queue

-- %(job_id)s = :job_1
-- %(queue_name)s = 'fair'
-- %(rank)s = 0
-- %(key)s = 'key'
-- %(default_weight)s = 1.0
WITH reached AS MATERIALIZED (
  SELECT COALESCE(
    (
      SELECT CASE WHEN turn BETWEEN 0 AND :token THEN turn END
      FROM steady_queue_ready_executions AS ready
      WHERE queue_name >= %(queue_name)s::text
        AND queue_name <= %(queue_name)s::text
        AND "rank" = %(rank)s::smallint
      ORDER BY queue_name, "rank", turn
      LIMIT 1
    ),
    %(job_id)s::bigint
  ) AS turn,
    1 / COALESCE(
      (
        SELECT weight
        FROM steady_queue_shares
        WHERE queue_name = %(queue_name)s::text
          AND "key" = %(key)s::text
          AND weight BETWEEN 1
          AND 1000
      ),
      %(default_weight)s::float8
    ) AS step
),
moved AS (
  INSERT INTO steady_queue_turns AS known (queue_name, "rank", "key", turn)
  SELECT %(queue_name)s::text, %(rank)s::smallint, %(key)s::text, turn + step
  FROM reached
  ON CONFLICT (queue_name, "rank", "key") DO UPDATE
  SET turn = GREATEST(
    CASE WHEN known.turn BETWEEN 0
    AND :token THEN known.turn ELSE 0 END + (SELECT step FROM reached), excluded.turn
  )
  RETURNING turn
),
taken AS (SELECT moved.turn - step AS turn FROM moved, reached)
UPDATE steady_queue_ready_executions AS ready
SET turn = CASE WHEN taken.turn = ready.job_id THEN taken.turn + 0.001 ELSE taken.turn END
FROM taken
WHERE ready.job_id = %(job_id)s::bigint
RETURNING ready.job_id;
