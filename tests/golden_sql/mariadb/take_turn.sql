-- -------- a job of a fair queue

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

INSERT INTO steady_queue_turns (queue_name, `rank`, `key`, turn)
SELECT 'fair', 0, 'key', new.reached + new.step
FROM (
  SELECT COALESCE(
    (
      SELECT IF(turn BETWEEN 0 AND :token, turn, NULL)
      FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue)
      WHERE queue_name = 'fair' AND `rank` = 0
      ORDER BY turn
      LIMIT 1
    ),
    :job_1
  ) AS reached,
    1e0 / COALESCE(
      (
        SELECT weight
        FROM steady_queue_shares
        WHERE queue_name = 'fair' AND `key` = 'key' AND weight BETWEEN 1 AND 1000
      ),
      1.0
    ) AS step
) AS new
ON DUPLICATE KEY UPDATE turn = GREATEST(
  IF(steady_queue_turns.turn BETWEEN 0 AND :token, steady_queue_turns.turn, 0) + new.step,
  new.reached + new.step
);

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

COMMIT;
