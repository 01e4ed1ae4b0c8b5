-- -------- all queues

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`,
  j.`backend_name`, j.`arguments`, j.`attempts`, j.`max_attempts`, j.`worker_ids`,
  j.`errors`, j.`enqueued_at`, j.`started_at`, j.`concurrency_key`, j.`metadata`, j.finished_at IS NULL
  AND j.token = r.token, UTC_TIMESTAMP(6), TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))
FROM steady_queue_ready_executions r FORCE INDEX (steady_queue_ready_poll)
LEFT JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = r.job_id
WHERE r.`rank` >= -32768 AND NOT EXISTS (SELECT 1 FROM steady_queue_pauses)
ORDER BY r.`rank`, r.turn
LIMIT 2
FOR UPDATE OF r SKIP LOCKED;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_2, 'mail', -5, :token, ':time', :process),
  (:job_1, 'default', 0, :token, ':time', :process);

DELETE r
FROM (
  SELECT :job_2 AS id UNION ALL SELECT :job_1
) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- one queue

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`,
  j.`backend_name`, j.`arguments`, j.`attempts`, j.`max_attempts`, j.`worker_ids`,
  j.`errors`, j.`enqueued_at`, j.`started_at`, j.`concurrency_key`, j.`metadata`, j.finished_at IS NULL
  AND j.token = r.token, UTC_TIMESTAMP(6), TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))
FROM steady_queue_ready_executions r FORCE INDEX (steady_queue_ready_queue)
LEFT JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = r.job_id
WHERE r.queue_name = 'mail'
ORDER BY r.`rank`, r.turn
LIMIT 2
FOR UPDATE OF r SKIP LOCKED;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_2, 'mail', -5, :token, ':time', :process),
  (:job_1, 'mail', 0, :token, ':time', :process);

DELETE r
FROM (
  SELECT :job_2 AS id UNION ALL SELECT :job_1
) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- queues by prefix

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT DISTINCT queue_name
FROM steady_queue_ready_executions FORCE INDEX (steady_queue_ready_queue)
WHERE queue_name >= 'mail' AND queue_name < 'maim';

-- SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`, ... as under "one queue"

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_2, 'mail', -5, :token, ':time', :process),
  (:job_1, 'mail', 0, :token, ':time', :process);

DELETE r
FROM (
  SELECT :job_2 AS id UNION ALL SELECT :job_1
) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- all queues but some

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`,
  j.`backend_name`, j.`arguments`, j.`attempts`, j.`max_attempts`, j.`worker_ids`,
  j.`errors`, j.`enqueued_at`, j.`started_at`, j.`concurrency_key`, j.`metadata`, j.finished_at IS NULL
  AND j.token = r.token, UTC_TIMESTAMP(6), TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))
FROM (
  (
    SELECT r.job_id AS id, r.`rank` AS position
    FROM steady_queue_ready_executions r FORCE INDEX (steady_queue_ready_poll)
    WHERE r.`rank` >= -32768
      AND r.`rank` < 32768
      AND NOT (r.queue_name >= 'mail' AND r.queue_name < 'maim')
      AND r.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
    ORDER BY r.`rank`, r.turn
    LIMIT 52
  )
  LIMIT 52
) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id
LEFT JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = r.job_id
LIMIT 2
FOR UPDATE OF r SKIP LOCKED;

(
  SELECT r.job_id AS id, r.`rank` AS position
  FROM steady_queue_ready_executions r FORCE INDEX (steady_queue_ready_poll)
  WHERE r.`rank` >= -32768
    AND r.`rank` < 32768
    AND NOT (r.queue_name >= 'mail' AND r.queue_name < 'maim')
    AND r.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
  ORDER BY r.`rank`, r.turn
  LIMIT 252
)
LIMIT 252 OFFSET 52;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

DELETE r
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- all queues, one of them paused

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`, ... as under "all queues"

SELECT 1
FROM steady_queue_pauses p STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (steady_queue_ready_queue) ON r.queue_name = p.queue_name
LIMIT 100;

SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`,
  j.`backend_name`, j.`arguments`, j.`attempts`, j.`max_attempts`, j.`worker_ids`,
  j.`errors`, j.`enqueued_at`, j.`started_at`, j.`concurrency_key`, j.`metadata`, j.finished_at IS NULL
  AND j.token = r.token, UTC_TIMESTAMP(6), TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))
FROM (
  (
    SELECT r.job_id AS id, r.`rank` AS position
    FROM steady_queue_ready_executions r FORCE INDEX (steady_queue_ready_poll)
    WHERE r.`rank` >= -32768
      AND r.`rank` < 32768
      AND r.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
    ORDER BY r.`rank`, r.turn
    LIMIT 52
  )
  LIMIT 52
) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id
LEFT JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = r.job_id
LIMIT 2
FOR UPDATE OF r SKIP LOCKED;

(
  SELECT r.job_id AS id, r.`rank` AS position
  FROM steady_queue_ready_executions r FORCE INDEX (steady_queue_ready_poll)
  WHERE r.`rank` >= -32768
    AND r.`rank` < 32768
    AND r.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses)
  ORDER BY r.`rank`, r.turn
  LIMIT 252
)
LIMIT 252 OFFSET 52;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

DELETE r
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- nothing is ready

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

-- -------- nothing is ready, twice

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;
