-- -------- in a session of the project

SELECT count(*)
FROM (
  SELECT 1
  FROM steady_queue_ready_executions INDEXED BY steady_queue_ready_queue
  WHERE queue_name = 'mail'
  LIMIT 100
);

-- -------- in a transaction of the caller

BEGIN IMMEDIATE;

DELETE FROM steady_queue_pauses WHERE 0;

-- SELECT count(*) ... as under "in a session of the project"

COMMIT;
