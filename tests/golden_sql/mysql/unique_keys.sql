-- -------- a job with a key

BEGIN;

SELECT `steady_queue_unique_keys`.`key`, `steady_queue_unique_keys`.`job_id`,
  `steady_queue_unique_keys`.`expires_at`, `steady_queue_unique_keys`.`ticket`
FROM `steady_queue_unique_keys`
WHERE `steady_queue_unique_keys`.`key` IN ('a');

INSERT INTO `steady_queue_unique_keys` (`key`, `job_id`, `expires_at`, `ticket`)
VALUES ('a', NULL, NULL, :token) AS new
ON DUPLICATE KEY UPDATE `ticket` = new.`ticket`;

SELECT `steady_queue_unique_keys`.`key`, `steady_queue_unique_keys`.`job_id`,
  `steady_queue_unique_keys`.`expires_at`, `steady_queue_unique_keys`.`ticket`
FROM `steady_queue_unique_keys`
WHERE `steady_queue_unique_keys`.`key` IN ('a');

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at, concurrency_key, concurrency_limit, concurrency_duration,
  concurrency_discards, metadata
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
  NULL, NULL, NULL, NULL, 0, '{"unique":{"__sq_tuple__":["a"]}}'
);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now,
  LAST_INSERT_ID() + 0 * @steady_queue_step
);

INSERT INTO `steady_queue_unique_keys` (`key`, `job_id`, `expires_at`, `ticket`)
VALUES ('a', :job_1, NULL, :token) AS new
ON DUPLICATE KEY UPDATE `job_id` = new.`job_id`, `expires_at` = new.`expires_at`;

COMMIT;

-- -------- a duplicate

BEGIN;

SELECT `steady_queue_unique_keys`.`key`, `steady_queue_unique_keys`.`job_id`,
  `steady_queue_unique_keys`.`expires_at`, `steady_queue_unique_keys`.`ticket`
FROM `steady_queue_unique_keys`
WHERE `steady_queue_unique_keys`.`key` IN ('a');

SELECT `steady_queue_jobs`.`id`, `steady_queue_jobs`.`queue_name`,
  `steady_queue_jobs`.`task_path`, `steady_queue_jobs`.`backend_name`,
  `steady_queue_jobs`.`rank`, `steady_queue_jobs`.`concurrency_key`,
  `steady_queue_jobs`.`concurrency_limit`, `steady_queue_jobs`.`concurrency_duration`,
  `steady_queue_jobs`.`concurrency_discards`, `steady_queue_jobs`.`max_attempts`,
  `steady_queue_jobs`.`attempts`, `steady_queue_jobs`.`token`,
  `steady_queue_jobs`.`enqueued_at`, `steady_queue_jobs`.`scheduled_at`,
  `steady_queue_jobs`.`started_at`, `steady_queue_jobs`.`last_attempted_at`,
  `steady_queue_jobs`.`finished_at`, `steady_queue_claimed_executions`.`created_at`,
  `steady_queue_claimed_executions`.`job_id`,
  `steady_queue_claimed_executions`.`queue_name`,
  `steady_queue_claimed_executions`.`rank`, `steady_queue_claimed_executions`.`token`,
  `steady_queue_claimed_executions`.`process_id`
FROM `steady_queue_jobs`
LEFT OUTER
JOIN `steady_queue_claimed_executions` ON (
  `steady_queue_jobs`.`id` = `steady_queue_claimed_executions`.`job_id`
)
WHERE `steady_queue_jobs`.`id` IN (:job_1);

COMMIT;

-- -------- a job that replaces another one

BEGIN;

SELECT `steady_queue_unique_keys`.`key`, `steady_queue_unique_keys`.`job_id`,
  `steady_queue_unique_keys`.`expires_at`, `steady_queue_unique_keys`.`ticket`
FROM `steady_queue_unique_keys`
WHERE `steady_queue_unique_keys`.`key` IN ('a');

-- SELECT `steady_queue_jobs`.`id`, `steady_queue_jobs`.`queue_name`, ... as under "a duplicate"

INSERT INTO `steady_queue_unique_keys` (`key`, `job_id`, `expires_at`, `ticket`)
VALUES ('a', NULL, NULL, :token) AS new
ON DUPLICATE KEY UPDATE `ticket` = new.`ticket`;

SELECT `steady_queue_unique_keys`.`key`, `steady_queue_unique_keys`.`job_id`,
  `steady_queue_unique_keys`.`expires_at`, `steady_queue_unique_keys`.`ticket`
FROM `steady_queue_unique_keys`
WHERE `steady_queue_unique_keys`.`key` IN ('a');

-- SELECT `steady_queue_jobs`.`id`, `steady_queue_jobs`.`queue_name`, ... as under "a duplicate"

SELECT `steady_queue_jobs`.`id` AS `pk`,
  `steady_queue_jobs`.`concurrency_key` AS `concurrency_key`,
  `steady_queue_jobs`.`metadata` AS `metadata`
FROM `steady_queue_jobs`
WHERE `steady_queue_jobs`.`id` IN (:job_1)
ORDER BY 1 ASC;

SELECT `steady_queue_scheduled_executions`.`created_at`,
  `steady_queue_scheduled_executions`.`job_id`,
  `steady_queue_scheduled_executions`.`queue_name`,
  `steady_queue_scheduled_executions`.`rank`, `steady_queue_scheduled_executions`.`token`,
  `steady_queue_scheduled_executions`.`due_at`,
  `steady_queue_scheduled_executions`.`concurrency_key`
FROM `steady_queue_scheduled_executions`
WHERE `steady_queue_scheduled_executions`.`job_id` = :job_1
FOR UPDATE;

SELECT `steady_queue_blocked_executions`.`created_at`,
  `steady_queue_blocked_executions`.`job_id`,
  `steady_queue_blocked_executions`.`queue_name`,
  `steady_queue_blocked_executions`.`rank`, `steady_queue_blocked_executions`.`token`,
  `steady_queue_blocked_executions`.`concurrency_key`
FROM `steady_queue_blocked_executions`
WHERE `steady_queue_blocked_executions`.`job_id` = :job_1
FOR UPDATE;

SELECT `steady_queue_ready_executions`.`created_at`,
  `steady_queue_ready_executions`.`job_id`, `steady_queue_ready_executions`.`queue_name`,
  `steady_queue_ready_executions`.`rank`, `steady_queue_ready_executions`.`token`,
  `steady_queue_ready_executions`.`turn`
FROM `steady_queue_ready_executions`
WHERE `steady_queue_ready_executions`.`job_id` = :job_1
FOR UPDATE;

DELETE FROM `steady_queue_ready_executions`
WHERE `steady_queue_ready_executions`.`job_id` = :job_1;

SELECT `steady_queue_permits`.`job_id`, `steady_queue_permits`.`key`
FROM `steady_queue_permits`
WHERE `steady_queue_permits`.`job_id` IN (:job_1)
FOR UPDATE;

SELECT UTC_TIMESTAMP(6);

UPDATE `steady_queue_jobs`
SET `queue_name` = 'mail', `task_path` = 'conformance.tasks.work',
  `backend_name` = 'default', `rank` = 0, `arguments` = '{}',
  `metadata` = '{"unique":{"__sq_tuple__":["a","finished",{"__sq_timedelta__":[0,0,0]},"replace"]}}',
  `max_attempts` = 1, `token` = 1, `enqueued_at` = ':time', `scheduled_at` = NULL,
  `concurrency_key` = NULL, `concurrency_limit` = NULL, `concurrency_duration` = NULL,
  `concurrency_discards` = false
WHERE `steady_queue_jobs`.`id` = :job_1;

INSERT INTO `steady_queue_ready_executions` (
  `created_at`, `job_id`, `queue_name`, `rank`, `token`, `turn`
)
VALUES (':time', :job_1, 'mail', 0, 1, :job_1.0);

COMMIT;

-- -------- the end of a job

BEGIN;

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

DELETE FROM `steady_queue_unique_keys`
WHERE `key` = 'a' AND (`job_id` = :job_1 OR `job_id` IS NULL);

COMMIT;

-- -------- the end of a job that keeps its key

BEGIN;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

-- UPDATE ( ... as under "the end of a job"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

SELECT UTC_TIMESTAMP(6);

UPDATE `steady_queue_unique_keys`
SET `expires_at` = ':time'
WHERE (`steady_queue_unique_keys`.`job_id` = :job_1 AND `steady_queue_unique_keys`.`key` = 'a');

COMMIT;

-- -------- the start of a job that gives its key up

BEGIN;

SELECT `steady_queue_claimed_executions`.`job_id` AS `pk`,
  `steady_queue_claimed_executions`.`token` AS `token`
FROM `steady_queue_claimed_executions`
WHERE `steady_queue_claimed_executions`.`job_id` IN (:job_1);

SELECT `steady_queue_unique_keys`.`key`, `steady_queue_unique_keys`.`job_id`,
  `steady_queue_unique_keys`.`expires_at`, `steady_queue_unique_keys`.`ticket`
FROM `steady_queue_unique_keys`
WHERE `steady_queue_unique_keys`.`key` IN ('a')
ORDER BY `steady_queue_unique_keys`.`key` ASC
FOR UPDATE SKIP LOCKED;

DELETE FROM `steady_queue_unique_keys`
WHERE `key` = 'a' AND (`job_id` = :job_1 OR `job_id` IS NULL);

SELECT UTC_TIMESTAMP(6);

UPDATE `steady_queue_jobs`
SET `started_at` = ':time'
WHERE (`steady_queue_jobs`.`id` IN (:job_1) AND `steady_queue_jobs`.`started_at` IS NULL);

COMMIT;
