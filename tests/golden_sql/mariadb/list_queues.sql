-- -------- all

SELECT DISTINCT queue_name
FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue);

-- -------- by prefix

SELECT DISTINCT queue_name
FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue)
WHERE queue_name >= 'mail' AND queue_name < 'maim';
