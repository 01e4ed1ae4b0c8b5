-- -------- a job of a fair queue

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

UPDATE steady_queue_turns t
SET turn = GREATEST(
  IF(turn BETWEEN 0 AND :token, turn, 0) + 1e0 / COALESCE(
    (
      SELECT weight
      FROM steady_queue_shares
      WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
    ),
    1.0
  ),
  COALESCE(
    (
      SELECT IF(turn BETWEEN 0 AND :token, turn, NULL)
      FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue)
      WHERE queue_name = 'fair' AND `rank` = 0
      ORDER BY turn
      LIMIT 1
    ),
    :job_1
  ) + 1e0 / COALESCE(
    (
      SELECT weight
      FROM steady_queue_shares
      WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
    ),
    1.0
  )
)
WHERE t.queue_name = 'fair' AND t.`rank` = 0 AND t.`key` = 'key';

UPDATE steady_queue_ready_executions r STRAIGHT_JOIN steady_queue_turns t ON t.queue_name = 'fair'
  AND t.`rank` = 0
  AND t.`key` = 'key'
SET r.turn = t.turn - 1e0 / COALESCE(
  (
    SELECT weight
    FROM steady_queue_shares
    WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
  ),
  1.0
) + IF(
  t.turn - 1e0 / COALESCE(
    (
      SELECT weight
      FROM steady_queue_shares
      WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
    ),
    1.0
  ) = r.job_id,
  0.001, 0
)
WHERE r.job_id = :job_1;

INSERT INTO steady_queue_turns (queue_name, `rank`, `key`, turn)
VALUES (
  'fair', 0, 'key',
  COALESCE(
    (
      SELECT IF(turn BETWEEN 0 AND :token, turn, NULL)
      FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue)
      WHERE queue_name = 'fair' AND `rank` = 0
      ORDER BY turn
      LIMIT 1
    ),
    :job_1
  ) + 1e0 / COALESCE(
    (
      SELECT weight
      FROM steady_queue_shares
      WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
    ),
    1.0
  )
)
ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id),
  turn = GREATEST(
    IF(turn BETWEEN 0 AND :token, turn, 0) + 1e0 / COALESCE(
      (
        SELECT weight
        FROM steady_queue_shares
        WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
      ),
      1.0
    ),
    COALESCE(
      (
        SELECT IF(turn BETWEEN 0 AND :token, turn, NULL)
        FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue)
        WHERE queue_name = 'fair' AND `rank` = 0
        ORDER BY turn
        LIMIT 1
      ),
      :job_1
    ) + 1e0 / COALESCE(
      (
        SELECT weight
        FROM steady_queue_shares
        WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
      ),
      1.0
    )
  );

UPDATE steady_queue_ready_executions r STRAIGHT_JOIN steady_queue_turns t ON t.id = LAST_INSERT_ID()
SET r.turn = t.turn - 1e0 / COALESCE(
  (
    SELECT weight
    FROM steady_queue_shares
    WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
  ),
  1.0
) + IF(
  t.turn - 1e0 / COALESCE(
    (
      SELECT weight
      FROM steady_queue_shares
      WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
    ),
    1.0
  ) = r.job_id,
  0.001, 0
)
WHERE r.job_id = :job_1;

COMMIT;
