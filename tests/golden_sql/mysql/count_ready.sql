-- -------- in a session of the project

SELECT COUNT(*)
FROM (
  SELECT 1
  FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue)
  WHERE queue_name = 'mail'
  LIMIT 100
) AS counted;

-- -------- in a transaction of the caller

BEGIN;

-- SELECT COUNT(*) ... as under "in a session of the project"

COMMIT;
