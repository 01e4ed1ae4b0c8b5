-- -------- all

WITH RECURSIVE queue(name) AS (
  SELECT *
  FROM (
    SELECT queue_name
    FROM steady_queue_ready_executions
    WHERE queue_name >= '' AND queue_name < ''
    ORDER BY queue_name
    LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT queue_name
    FROM steady_queue_ready_executions
    WHERE queue_name > queue.name AND queue_name < ''
    ORDER BY queue_name
    LIMIT 1
  )
  FROM queue
  WHERE queue.name IS NOT NULL
)
SELECT name
FROM queue
WHERE name IS NOT NULL;

-- -------- by prefix

WITH RECURSIVE queue(name) AS (
  SELECT *
  FROM (
    SELECT queue_name
    FROM steady_queue_ready_executions
    WHERE queue_name >= 'mail' AND queue_name < 'maim'
    ORDER BY queue_name
    LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT queue_name
    FROM steady_queue_ready_executions
    WHERE queue_name > queue.name AND queue_name < 'maim'
    ORDER BY queue_name
    LIMIT 1
  )
  FROM queue
  WHERE queue.name IS NOT NULL
)
SELECT name
FROM queue
WHERE name IS NOT NULL;
