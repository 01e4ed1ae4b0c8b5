-- -------- a key with a waiting job

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

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

-- -------- an unknown key

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

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

COMMIT;
