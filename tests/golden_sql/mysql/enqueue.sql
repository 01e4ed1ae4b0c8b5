-- -------- one job

START TRANSACTION;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now, NULL
);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now,
  LAST_INSERT_ID() + 0 * @steady_queue_step
);

COMMIT;

-- -------- several jobs that are alike

START TRANSACTION;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now, NULL
),
  ('default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now, NULL);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now,
  LAST_INSERT_ID() + 0 * @steady_queue_step
),
  (
    LAST_INSERT_ID() + 1 * @steady_queue_step, 'default', 0, 0, @steady_queue_now,
    LAST_INSERT_ID() + 1 * @steady_queue_step
  );

COMMIT;

-- -------- several jobs

START TRANSACTION;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now, NULL
),
  ('mail', 'conformance.tasks.work', 'default', -5, '{}', 1, 0, 0, @steady_queue_now, NULL);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now,
  LAST_INSERT_ID() + 0 * @steady_queue_step
),
  (
    LAST_INSERT_ID() + 1 * @steady_queue_step, 'mail', -5, 0, @steady_queue_now,
    LAST_INSERT_ID() + 1 * @steady_queue_step
  );

COMMIT;

-- -------- a job with a delay

START TRANSACTION;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
  @steady_queue_now + INTERVAL 60000000 MICROSECOND
);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key
)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now,
  @steady_queue_now + INTERVAL 60000000 MICROSECOND, NULL
);

COMMIT;

-- -------- a job for an instant

START TRANSACTION;

SELECT UTC_TIMESTAMP(6);

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now, ':time'
);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key
)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now, ':time', NULL
);

COMMIT;

-- -------- a job with a limit

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_semaphores (`key`, value, `limit`)
VALUES ('key', -:token, 1) AS given
ON DUPLICATE KEY UPDATE `key` = given.`key`;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at, concurrency_key, concurrency_limit, concurrency_duration,
  concurrency_discards, metadata
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
  NULL, 'key', 1, 180000000, 0, NULL
);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, `rank`, token, created_at, concurrency_key
)
VALUES (LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now, 'key');

(
  SELECT 'key' AS `key`, count(*)
  FROM steady_queue_permits FORCE INDEX (steady_queue_permits_key)
  WHERE `key` = 'key'
);

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

-- -------- jobs of one key

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_semaphores (`key`, value, `limit`)
VALUES ('key', -:token, 2) AS given
ON DUPLICATE KEY UPDATE `key` = given.`key`;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at, concurrency_key, concurrency_limit, concurrency_duration,
  concurrency_discards, metadata
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
  NULL, 'key', 2, 180000000, 0, NULL
),
  (
    'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
    NULL, 'key', 2, 180000000, 0, NULL
  ),
  (
    'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
    NULL, 'key', 2, 180000000, 0, NULL
  );

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, `rank`, token, created_at, concurrency_key
)
VALUES (LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now, 'key'),
  (LAST_INSERT_ID() + 1 * @steady_queue_step, 'default', 0, 0, @steady_queue_now, 'key'),
  (LAST_INSERT_ID() + 2 * @steady_queue_step, 'default', 0, 0, @steady_queue_now, 'key');

(
  SELECT 'key' AS `key`, count(*)
  FROM steady_queue_permits FORCE INDEX (steady_queue_permits_key)
  WHERE `key` = 'key'
);

REPLACE INTO steady_queue_permits (job_id, `key`)
SELECT b.job_id, b.concurrency_key
FROM (
  SELECT :job_1 AS id UNION ALL SELECT :job_2
) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
SELECT b.job_id, b.queue_name, b.`rank`, b.token, UTC_TIMESTAMP(6), b.job_id
FROM (
  SELECT :job_1 AS id UNION ALL SELECT :job_2
) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

DELETE b
FROM (
  SELECT :job_1 AS id UNION ALL SELECT :job_2
) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

UPDATE steady_queue_semaphores FORCE INDEX (PRIMARY)
SET value = CASE `key` WHEN 'key' THEN 0 END
WHERE `key` IN ('key');

COMMIT;

-- -------- a job that rather is not run than waits

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_semaphores (`key`, value, `limit`)
VALUES ('key', -:token, 1) AS given
ON DUPLICATE KEY UPDATE `key` = given.`key`;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at, concurrency_key, concurrency_limit, concurrency_duration,
  concurrency_discards, metadata
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
  NULL, 'key', 1, 180000000, 1, NULL
);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, `rank`, token, created_at, concurrency_key
)
VALUES (LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now, 'key');

(
  SELECT 'key' AS `key`, count(*)
  FROM steady_queue_permits FORCE INDEX (steady_queue_permits_key)
  WHERE `key` = 'key'
);

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
