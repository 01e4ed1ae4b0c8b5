-- -------- due jobs

SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), min(due_at)) / 1e6
FROM steady_queue_scheduled_executions;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT job_id, queue_name, `rank`, token, concurrency_key
FROM steady_queue_scheduled_executions FORCE INDEX (steady_queue_scheduled_due)
WHERE due_at <= UTC_TIMESTAMP(6)
ORDER BY due_at, `rank`, job_id
LIMIT 10
FOR UPDATE SKIP LOCKED;

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
VALUES (:job_1, 'default', 0, 0, UTC_TIMESTAMP(6), :job_1);

DELETE s
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_scheduled_executions s FORCE INDEX (PRIMARY) ON s.job_id = given.id;

COMMIT;

SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), min(due_at)) / 1e6
FROM steady_queue_scheduled_executions;

-- -------- a due job with a limit

SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), min(due_at)) / 1e6
FROM steady_queue_scheduled_executions;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

-- SELECT job_id, queue_name, `rank`, token, concurrency_key ... as under "due jobs"

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, `rank`, token, created_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, UTC_TIMESTAMP(6), 'key');

DELETE s
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_scheduled_executions s FORCE INDEX (PRIMARY) ON s.job_id = given.id;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

SELECT j.concurrency_limit
FROM steady_queue_blocked_executions b FORCE INDEX (steady_queue_blocked_release) STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = b.job_id
WHERE b.concurrency_key = 'key'
ORDER BY b.`rank`, b.job_id
LIMIT 1;

INSERT INTO steady_queue_semaphores (`key`, value, `limit`)
VALUES ('key', 0, 1) AS given
ON DUPLICATE KEY UPDATE `limit` = given.`limit`;

(
  SELECT 'key' AS `key`, count(*)
  FROM steady_queue_permits FORCE INDEX (steady_queue_permits_key)
  WHERE `key` = 'key'
);

SELECT job_id, concurrency_key
FROM steady_queue_blocked_executions FORCE INDEX (steady_queue_blocked_release)
WHERE concurrency_key = 'key'
ORDER BY `rank`, job_id
LIMIT 1
FOR UPDATE;

REPLACE INTO steady_queue_permits (job_id, `key`)
SELECT b.job_id, b.concurrency_key
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
SELECT b.job_id, b.queue_name, b.`rank`, b.token, UTC_TIMESTAMP(6), b.job_id
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

DELETE b
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 0 END
WHERE `key` IN ('key');

COMMIT;

SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), min(due_at)) / 1e6
FROM steady_queue_scheduled_executions;

-- -------- a due job with a limit that finds no permit

SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), min(due_at)) / 1e6
FROM steady_queue_scheduled_executions;

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

-- SELECT job_id, queue_name, `rank`, token, concurrency_key ... as under "due jobs"

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, `rank`, token, created_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, UTC_TIMESTAMP(6), 'key');

DELETE s
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_scheduled_executions s FORCE INDEX (PRIMARY) ON s.job_id = given.id;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

(
  SELECT 'key' AS `key`, count(*)
  FROM (
    SELECT 1
    FROM steady_queue_permits FORCE INDEX (steady_queue_permits_key)
    WHERE `key` = 'key'
    LIMIT 51
  ) few
);

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 0 END
WHERE `key` IN ('key');

SELECT j.id, j.metadata
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id
  AND b.token < 4294967296 STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
  AND j.concurrency_discards
FOR UPDATE;

DELETE b, j
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id
  AND b.token < 4294967296 STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
  AND j.concurrency_discards;

COMMIT;

SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), min(due_at)) / 1e6
FROM steady_queue_scheduled_executions;

-- -------- nothing is due

SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), min(due_at)) / 1e6
FROM steady_queue_scheduled_executions;
