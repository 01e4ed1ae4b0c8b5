-- -------- all queues

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

BEGIN IMMEDIATE;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT j.id IS NOT NULL
  AND j.finished_at IS NULL
  AND c.job_id IS NULL, CAST(r.turn AS REAL), r."job_id", CAST(r."token" AS INTEGER),
  r."queue_name", CAST(r."rank" AS INTEGER), j."task_path", j."backend_name",
  j."arguments", CAST(j."attempts" AS INTEGER), CAST(j."max_attempts" AS INTEGER),
  j."worker_ids", j."errors", j."enqueued_at", j."started_at", j."concurrency_key",
  j."metadata"
FROM steady_queue_ready_executions r
LEFT JOIN steady_queue_jobs j ON j.id = r.job_id
LEFT JOIN steady_queue_claimed_executions c ON c.job_id = r.job_id
ORDER BY r."rank", r.turn
LIMIT 2;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'mail', -5, :token, ':time', :process);

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

COMMIT;

-- -------- one queue

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

BEGIN IMMEDIATE;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT j.id IS NOT NULL
  AND j.finished_at IS NULL
  AND c.job_id IS NULL, CAST(r.turn AS REAL), r."job_id", CAST(r."token" AS INTEGER),
  r."queue_name", CAST(r."rank" AS INTEGER), j."task_path", j."backend_name",
  j."arguments", CAST(j."attempts" AS INTEGER), CAST(j."max_attempts" AS INTEGER),
  j."worker_ids", j."errors", j."enqueued_at", j."started_at", j."concurrency_key",
  j."metadata"
FROM steady_queue_ready_executions r
LEFT JOIN steady_queue_jobs j ON j.id = r.job_id
LEFT JOIN steady_queue_claimed_executions c ON c.job_id = r.job_id
WHERE r.queue_name = 'mail'
ORDER BY r."rank", r.turn
LIMIT 2;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'mail', -5, :token, ':time', :process);

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_1, 'mail', 0, :token, ':time', :process);

COMMIT;

-- -------- queues by prefix

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

BEGIN IMMEDIATE;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

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

-- SELECT j.id IS NOT NULL ... as under "one queue"

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'mail', -5, :token, ':time', :process);

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_1, 'mail', 0, :token, ':time', :process);

COMMIT;

-- -------- all queues but some

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

BEGIN IMMEDIATE;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT count(*)
FROM (
  SELECT 1
  FROM steady_queue_pauses p
  CROSS JOIN steady_queue_ready_executions r ON r.queue_name = p.queue_name
  LIMIT 100
);

SELECT count(*)
FROM (
  SELECT 1
  FROM steady_queue_ready_executions
  WHERE queue_name >= 'mail' AND queue_name < 'maim'
  LIMIT 100
);

SELECT j.id IS NOT NULL
  AND j.finished_at IS NULL
  AND c.job_id IS NULL, CAST(r.turn AS REAL), r."job_id", CAST(r."token" AS INTEGER),
  r."queue_name", CAST(r."rank" AS INTEGER), j."task_path", j."backend_name",
  j."arguments", CAST(j."attempts" AS INTEGER), CAST(j."max_attempts" AS INTEGER),
  j."worker_ids", j."errors", j."enqueued_at", j."started_at", j."concurrency_key",
  j."metadata"
FROM steady_queue_ready_executions r
LEFT JOIN steady_queue_jobs j ON j.id = r.job_id
LEFT JOIN steady_queue_claimed_executions c ON c.job_id = r.job_id
WHERE (r."rank", r.turn) >= (-32768, 0.0)
  AND r."rank" < 32768
  AND r.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
  AND NOT (+r.queue_name >= 'mail' AND +r.queue_name < 'maim')
ORDER BY r."rank", r.turn
LIMIT 2;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

COMMIT;

-- -------- all queues, one of them paused

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

BEGIN IMMEDIATE;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT count(*) ... as under "all queues but some"

SELECT j.id IS NOT NULL
  AND j.finished_at IS NULL
  AND c.job_id IS NULL, CAST(r.turn AS REAL), r."job_id", CAST(r."token" AS INTEGER),
  r."queue_name", CAST(r."rank" AS INTEGER), j."task_path", j."backend_name",
  j."arguments", CAST(j."attempts" AS INTEGER), CAST(j."max_attempts" AS INTEGER),
  j."worker_ids", j."errors", j."enqueued_at", j."started_at", j."concurrency_key",
  j."metadata"
FROM steady_queue_ready_executions r
LEFT JOIN steady_queue_jobs j ON j.id = r.job_id
LEFT JOIN steady_queue_claimed_executions c ON c.job_id = r.job_id
WHERE (r."rank", r.turn) >= (-32768, 0.0)
  AND r."rank" < 32768
  AND r.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
ORDER BY r."rank", r.turn
LIMIT 2;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

COMMIT;

-- -------- nothing is ready

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

-- -------- nothing is ready, twice

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;
