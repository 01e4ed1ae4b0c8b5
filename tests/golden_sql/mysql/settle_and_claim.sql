-- -------- finished

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

UPDATE (
  SELECT :job_1 AS id, :token AS token, 1 AS attempts, NULL AS worker_ids, NULL AS errors,
    '1' AS return_value, NULL AS started_at, NULL AS last_attempted_at, 1 AS completed
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
SET j.attempts = given.attempts, j.token = given.token, j.worker_ids = given.worker_ids,
  j.errors = given.errors, j.return_value = given.return_value,
  j.started_at = given.started_at, j.last_attempted_at = given.last_attempted_at,
  j.finished_at = IF(given.completed, UTC_TIMESTAMP(6), NULL);

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

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
VALUES (:job_2, 'default', 0, :token, ':time', :process);

DELETE r
FROM (SELECT :job_2 AS id) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- finished, with a limit

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

SELECT p.`key`
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id STRAIGHT_JOIN steady_queue_permits p FORCE INDEX (PRIMARY) ON p.job_id = given.id
FOR UPDATE;

DELETE p
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id STRAIGHT_JOIN steady_queue_permits p FORCE INDEX (PRIMARY) ON p.job_id = given.id;

-- UPDATE ( ... as under "finished"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

(
  SELECT 'key' AS `key`, count(*)
  FROM (
    SELECT 1
    FROM steady_queue_permits FORCE INDEX (steady_queue_permits_key)
    WHERE `key` = 'key'
    LIMIT 51
  ) few
);

SELECT job_id, concurrency_key
FROM steady_queue_blocked_executions FORCE INDEX (steady_queue_blocked_release)
WHERE concurrency_key = 'key'
ORDER BY `rank`, job_id
LIMIT 1
FOR UPDATE;

REPLACE INTO steady_queue_permits (job_id, `key`)
SELECT b.job_id, b.concurrency_key
FROM (SELECT :job_2 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
SELECT b.job_id, b.queue_name, b.`rank`, b.token, UTC_TIMESTAMP(6), b.job_id
FROM (SELECT :job_2 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

DELETE b
FROM (SELECT :job_2 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 0 END
WHERE `key` IN ('key');

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`, ... as under "finished"

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

DELETE r
FROM (SELECT :job_2 AS id) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- released

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
SELECT given.id, given.queue_name, given.position, given.token, UTC_TIMESTAMP(6), given.id
FROM (
  SELECT :job_1 AS id, :token AS token, 'default' AS queue_name, 0 AS position
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id;

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`, ... as under "finished"

SELECT j.id, j.`task_path`, j.`backend_name`, j.`arguments`, j.`attempts`,
  j.`max_attempts`, j.`worker_ids`, j.`errors`, j.`enqueued_at`, j.`started_at`,
  j.`concurrency_key`, j.`metadata`, j.finished_at IS NULL
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id LOCK IN SHARE MODE;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process),
  (:job_2, 'default', 0, :token, ':time', :process);

DELETE r
FROM (
  SELECT :job_1 AS id UNION ALL SELECT :job_2
) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- released, with a limit

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
SELECT given.id, given.queue_name, given.position, given.token, UTC_TIMESTAMP(6), given.id
FROM (
  SELECT :job_1 AS id, :token AS token, 'default' AS queue_name, 0 AS position,
    'key' AS concurrency_key
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
WHERE EXISTS (SELECT 1 FROM steady_queue_permits p WHERE p.job_id = given.id);

REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, `rank`, token, created_at, concurrency_key
)
SELECT given.id, given.queue_name, given.position, given.token, UTC_TIMESTAMP(6),
  given.concurrency_key
FROM (
  SELECT :job_1 AS id, :token AS token, 'default' AS queue_name, 0 AS position,
    'key' AS concurrency_key
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
WHERE NOT EXISTS (SELECT 1 FROM steady_queue_permits p WHERE p.job_id = given.id);

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

-- ( ... as under "finished, with a limit"

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 0 END
WHERE `key` IN ('key');

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`, ... as under "finished"

SELECT j.id, j.`task_path`, j.`backend_name`, j.`arguments`, j.`attempts`,
  j.`max_attempts`, j.`worker_ids`, j.`errors`, j.`enqueued_at`, j.`started_at`,
  j.`concurrency_key`, j.`metadata`, j.finished_at IS NULL
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id LOCK IN SHARE MODE;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

DELETE r
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;
