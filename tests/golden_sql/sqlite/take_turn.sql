-- -------- a job of a fair queue

INSERT INTO steady_queue_turns (queue_name, "rank", key, turn)
SELECT 'fair', 0, 'key',
  COALESCE(
    (
      SELECT CASE WHEN typeof(turn) IN ('integer', 'real')
        AND turn BETWEEN 0
        AND :token THEN turn END
      FROM steady_queue_ready_executions INDEXED BY steady_queue_ready_queue
      WHERE queue_name = 'fair' AND "rank" = 0
      ORDER BY turn
      LIMIT 1
    ),
    :job_1
  ) + 1.0 / COALESCE(
    (
      SELECT CASE WHEN typeof(weight) IN ('integer', 'real')
        AND weight BETWEEN 1
        AND 1000 THEN weight END
      FROM steady_queue_shares
      WHERE queue_name = 'fair' AND key = 'key'
    ),
    CAST(1.0 AS REAL)
  )
WHERE true
ON CONFLICT (queue_name, "rank", key) DO UPDATE
SET turn = max(
  COALESCE(
    CASE WHEN typeof(steady_queue_turns.turn) IN ('integer', 'real')
    AND steady_queue_turns.turn BETWEEN 0
    AND :token THEN steady_queue_turns.turn END, 0
  ) + 1.0 / COALESCE(
    (
      SELECT CASE WHEN typeof(weight) IN ('integer', 'real')
        AND weight BETWEEN 1
        AND 1000 THEN weight END
      FROM steady_queue_shares
      WHERE queue_name = 'fair' AND key = 'key'
    ),
    CAST(1.0 AS REAL)
  ),
  excluded.turn
)
RETURNING turn - 1.0 / COALESCE(
  (
    SELECT CASE WHEN typeof(weight) IN ('integer', 'real')
      AND weight BETWEEN 1
      AND 1000 THEN weight END
    FROM steady_queue_shares
    WHERE queue_name = 'fair' AND key = 'key'
  ),
  CAST(1.0 AS REAL)
);

UPDATE steady_queue_ready_executions SET turn = :job_1.001 WHERE job_id = :job_1;
