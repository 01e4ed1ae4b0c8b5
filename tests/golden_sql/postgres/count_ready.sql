-- -------- in a session of the project

-- %(name)s = 'mail'
-- %(limit)s = 100
SELECT count(*)
FROM (
  SELECT
  FROM steady_queue_ready_executions
  WHERE queue_name >= %(name)s AND queue_name <= %(name)s
  ORDER BY queue_name, "rank", turn
  LIMIT (SELECT %(limit)s::bigint)
) AS counted;

-- -------- in a transaction of the caller

BEGIN;

-- %(name)s = 'mail'
-- %(limit)s = 100
-- SELECT count(*) ... as under "in a session of the project"

COMMIT;
