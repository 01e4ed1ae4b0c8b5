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

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 1 END
WHERE `key` IN ('key');

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- finished, and not kept

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

DELETE j
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id;

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

COMMIT;

-- -------- finished, and not kept, with a limit

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

DELETE j
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id;

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

-- ( ... as under "finished, with a limit"

-- SELECT job_id, concurrency_key ... as under "finished, with a limit"

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 1 END
WHERE `key` IN ('key');

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- failed

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

UPDATE (
  SELECT :job_1 AS id, :token AS token, 1 AS attempts, NULL AS worker_ids, NULL AS errors,
    NULL AS return_value, NULL AS started_at, NULL AS last_attempted_at, 1 AS completed
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
SET j.attempts = given.attempts, j.token = given.token, j.worker_ids = given.worker_ids,
  j.errors = given.errors, j.return_value = given.return_value,
  j.started_at = given.started_at, j.last_attempted_at = given.last_attempted_at,
  j.finished_at = IF(given.completed, UTC_TIMESTAMP(6), NULL);

REPLACE INTO steady_queue_failed_executions (
  job_id, created_at, exception_class, message, fingerprint
)
SELECT given.id, UTC_TIMESTAMP(6), given.exception_class, given.message, given.fingerprint
FROM (
  SELECT :job_1 AS id, :token AS token, 'builtins.ValueError' AS exception_class,
    'no' AS message, '0123456789abcdef' AS fingerprint
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id;

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

COMMIT;

-- -------- failed, with a limit

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

-- UPDATE ( ... as under "failed"

-- REPLACE INTO steady_queue_failed_executions ( ... as under "failed"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

-- ( ... as under "finished, with a limit"

-- SELECT job_id, concurrency_key ... as under "finished, with a limit"

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 1 END
WHERE `key` IN ('key');

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- retried later

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

UPDATE (
  SELECT :job_1 AS id, :token AS token, 1 AS attempts, NULL AS worker_ids, NULL AS errors,
    NULL AS return_value, NULL AS started_at, NULL AS last_attempted_at, 0 AS completed
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
SET j.attempts = given.attempts, j.token = given.token, j.worker_ids = given.worker_ids,
  j.errors = given.errors, j.return_value = given.return_value,
  j.started_at = given.started_at, j.last_attempted_at = given.last_attempted_at,
  j.finished_at = IF(given.completed, UTC_TIMESTAMP(6), NULL);

REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key
)
SELECT given.id, given.queue_name, given.position, given.token, UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL given.delay MICROSECOND, given.concurrency_key
FROM (
  SELECT :job_1 AS id, :token AS token, 'default' AS queue_name, 0 AS position,
    NULL AS concurrency_key, 60000000 AS delay
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id;

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

COMMIT;

-- -------- retried later, with a limit

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

-- UPDATE ( ... as under "retried later"

REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key
)
SELECT given.id, given.queue_name, given.position, given.token, UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL given.delay MICROSECOND, given.concurrency_key
FROM (
  SELECT :job_1 AS id, :token AS token, 'default' AS queue_name, 0 AS position,
    'key' AS concurrency_key, 60000000 AS delay
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id;

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

-- ( ... as under "finished, with a limit"

-- SELECT job_id, concurrency_key ... as under "finished, with a limit"

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 1 END
WHERE `key` IN ('key');

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- retried at once

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

-- UPDATE ( ... as under "retried later"

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
SELECT given.id, given.queue_name, given.position, given.token, UTC_TIMESTAMP(6), given.id
FROM (
  SELECT :job_1 AS id, :token AS token, 'default' AS queue_name, 0 AS position
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id;

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

COMMIT;

-- -------- retried at once, with a limit

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

-- UPDATE ( ... as under "retried later"

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

-- SELECT job_id, concurrency_key ... as under "finished, with a limit"

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

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- released

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

-- REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn) ... as under "retried at once"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

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

-- REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn) ... as under "retried at once, with a limit"

-- REPLACE INTO steady_queue_blocked_executions ( ... as under "retried at once, with a limit"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

-- ( ... as under "finished, with a limit"

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 0 END
WHERE `key` IN ('key');

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- finished, with an heir

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

UPDATE (
  SELECT :job_1 AS id, :token AS token, :job_2 AS heir, :token AS heir_token
) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id STRAIGHT_JOIN steady_queue_claimed_executions h FORCE INDEX (PRIMARY) ON h.job_id = given.heir
  AND h.token = given.heir_token STRAIGHT_JOIN steady_queue_permits p FORCE INDEX (PRIMARY) ON p.job_id = given.id
LEFT JOIN steady_queue_permits other FORCE INDEX (PRIMARY) ON other.job_id = given.heir
SET p.job_id = given.heir
WHERE other.job_id IS NULL;

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

-- ( ... as under "finished, with a limit"

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 0 END
WHERE `key` IN ('key');

COMMIT;
