-- -------- a job of a batch

BEGIN;

SELECT `steady_queue_batches`.`id`, `steady_queue_batches`.`kind`,
  `steady_queue_batches`.`description`, `steady_queue_batches`.`backend_name`,
  `steady_queue_batches`.`metadata`, `steady_queue_batches`.`callbacks`,
  `steady_queue_batches`.`member_id`, `steady_queue_batches`.`created_at`,
  `steady_queue_batches`.`started_at`, `steady_queue_batches`.`cancelled_at`,
  `steady_queue_batches`.`finished_at`, `steady_queue_batches`.`total`,
  `steady_queue_batches`.`failed`
FROM `steady_queue_batches`
WHERE `steady_queue_batches`.`id` IN (:batch)
ORDER BY `steady_queue_batches`.`id` DESC
FOR UPDATE;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at, concurrency_key, concurrency_limit, concurrency_duration,
  concurrency_discards, metadata
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
  NULL, NULL, NULL, NULL, 0, '{"batch":{"__sq_tuple__":[:batch]}}'
);

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'default', 0, 0, @steady_queue_now,
  LAST_INSERT_ID() + 0 * @steady_queue_step
);

INSERT INTO `steady_queue_batch_members` (`batch_id`, `job_id`, `name`, `state`)
VALUES (:batch, :job_1, '', 0);

COMMIT;

-- -------- a member that others are left of

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

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

SELECT `steady_queue_batch_members`.`id`, `steady_queue_batch_members`.`batch_id`,
  `steady_queue_batch_members`.`job_id`, `steady_queue_batch_members`.`name`,
  `steady_queue_batch_members`.`state`
FROM `steady_queue_batch_members`
WHERE (
  `steady_queue_batch_members`.`batch_id` = :batch AND `steady_queue_batch_members`.`state` = 0
)
ORDER BY `steady_queue_batch_members`.`id` DESC
LIMIT 1
FOR UPDATE SKIP LOCKED;

COMMIT;

-- -------- a member that others are left of, and a claim

BEGIN;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

-- UPDATE ( ... as under "a member that others are left of"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT `steady_queue_batch_members`.`id`, `steady_queue_batch_members`.`batch_id`, ... as under "a member that others are left of"

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

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

-- -------- the last member

BEGIN;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

-- UPDATE ( ... as under "a member that others are left of"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT `steady_queue_batch_members`.`id`, `steady_queue_batch_members`.`batch_id`, ... as under "a member that others are left of"

SELECT `steady_queue_batches`.`id`, `steady_queue_batches`.`kind`,
  `steady_queue_batches`.`description`, `steady_queue_batches`.`backend_name`,
  `steady_queue_batches`.`metadata`, `steady_queue_batches`.`callbacks`,
  `steady_queue_batches`.`member_id`, `steady_queue_batches`.`created_at`,
  `steady_queue_batches`.`started_at`, `steady_queue_batches`.`cancelled_at`,
  `steady_queue_batches`.`finished_at`, `steady_queue_batches`.`total`,
  `steady_queue_batches`.`failed`
FROM `steady_queue_batches`
WHERE `steady_queue_batches`.`id` = :batch
FOR UPDATE;

SELECT 1 AS `a`
FROM `steady_queue_batch_members`
WHERE (
  `steady_queue_batch_members`.`batch_id` = :batch AND `steady_queue_batch_members`.`state` = 0
)
LIMIT 1;

SELECT `steady_queue_batch_members`.`state` AS `state`,
  COUNT(`steady_queue_batch_members`.`id`) AS `pk__count`
FROM `steady_queue_batch_members`
WHERE `steady_queue_batch_members`.`batch_id` = :batch
GROUP BY 1
ORDER BY NULL;

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, `rank`, arguments, max_attempts, attempts, token,
  enqueued_at, scheduled_at, concurrency_key, concurrency_limit, concurrency_duration,
  concurrency_discards, metadata
)
VALUES (
  'on_success', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
  NULL, NULL, NULL, NULL, 0, '{"batch":{"__sq_tuple__":[:batch,false,true]}}'
),
  (
    'on_finish', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, @steady_queue_now,
    NULL, NULL, NULL, NULL, 0, '{"batch":{"__sq_tuple__":[:batch,false,true]}}'
  );

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn)
VALUES (
  LAST_INSERT_ID() + 0 * @steady_queue_step, 'on_success', 0, 0, @steady_queue_now,
  LAST_INSERT_ID() + 0 * @steady_queue_step
),
  (
    LAST_INSERT_ID() + 1 * @steady_queue_step, 'on_finish', 0, 0, @steady_queue_now,
    LAST_INSERT_ID() + 1 * @steady_queue_step
  );

SELECT UTC_TIMESTAMP(6);

UPDATE `steady_queue_batches`
SET `finished_at` = ':time', `total` = 1, `failed` = 0,
  `callbacks` = '{"on_success":{"queue_name":"on_success","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_failure":{"queue_name":"on_failure","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_finish":{"queue_name":"on_finish","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"enqueued":[:job_2,:job_3]}'
WHERE `steady_queue_batches`.`id` = :batch;

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- the last member, and a claim

BEGIN;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

-- UPDATE ( ... as under "a member that others are left of"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT `steady_queue_batch_members`.`id`, `steady_queue_batch_members`.`batch_id`, ... as under "a member that others are left of"

-- SELECT `steady_queue_batches`.`id`, `steady_queue_batches`.`kind`, ... as under "the last member"

-- SELECT 1 AS `a` ... as under "the last member"

-- SELECT `steady_queue_batch_members`.`state` AS `state`, ... as under "the last member"

SET @steady_queue_now = UTC_TIMESTAMP(6), @steady_queue_step = @@auto_increment_increment;

-- INSERT INTO steady_queue_jobs ( ... as under "the last member"

SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment,
  CAST(@steady_queue_now AS DATETIME(6));

-- REPLACE INTO steady_queue_ready_executions (job_id, queue_name, `rank`, token, created_at, turn) ... as under "the last member"

SELECT UTC_TIMESTAMP(6);

UPDATE `steady_queue_batches`
SET `finished_at` = ':time', `total` = 1, `failed` = 0,
  `callbacks` = '{"on_success":{"queue_name":"on_success","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_failure":{"queue_name":"on_failure","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_finish":{"queue_name":"on_finish","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"enqueued":[:job_2,:job_3]}'
WHERE `steady_queue_batches`.`id` = :batch;

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`, ... as under "a member that others are left of, and a claim"

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_2, 'on_success', 0, :token, ':time', :process),
  (:job_3, 'on_finish', 0, :token, ':time', :process);

DELETE r
FROM (
  SELECT :job_2 AS id UNION ALL SELECT :job_3
) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';

-- -------- a member that failed, others are left, and a claim

BEGIN;

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

UPDATE steady_queue_batch_members SET state = 2 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT `steady_queue_batch_members`.`id`, `steady_queue_batch_members`.`batch_id`, ... as under "a member that others are left of"

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT r.turn, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`, ... as under "a member that others are left of, and a claim"

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

DELETE r
FROM (SELECT :job_2 AS id) AS given STRAIGHT_JOIN steady_queue_ready_executions r FORCE INDEX (PRIMARY) ON r.job_id = given.id;

COMMIT;

-- -------- a member that a job waits for

BEGIN;

SELECT given.id
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token STRAIGHT_JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = given.id
FOR UPDATE;

-- UPDATE ( ... as under "a member that others are left of"

DELETE c
FROM (SELECT :job_1 AS id, :token AS token) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.token = given.token;

SELECT `steady_queue_batch_members`.`id` AS `pk`,
  `steady_queue_batch_members`.`job_id` AS `job_id`,
  `steady_queue_batch_members`.`batch_id` AS `batch_id`
FROM `steady_queue_batch_members`
WHERE (
  `steady_queue_batch_members`.`job_id` IN (:job_1) AND `steady_queue_batch_members`.`state` = 0
)
ORDER BY 1 ASC;

UPDATE `steady_queue_batch_members`
SET `state` = 1
WHERE `steady_queue_batch_members`.`id` IN (:member_1);

SELECT `steady_queue_dependencies`.`id` AS `pk`,
  `steady_queue_dependencies`.`job_id` AS `job_id`,
  `steady_queue_dependencies`.`parent_id` AS `parent_id`,
  `steady_queue_dependencies`.`run_when` AS `run_when`
FROM `steady_queue_dependencies`
WHERE (
  `steady_queue_dependencies`.`parent_id` IN (:member_1)
  AND `steady_queue_dependencies`.`state` = 0
)
ORDER BY 1 ASC;

UPDATE `steady_queue_dependencies`
SET `state` = 1
WHERE `steady_queue_dependencies`.`id` IN (:dependency);

-- SELECT `steady_queue_batch_members`.`id`, `steady_queue_batch_members`.`batch_id`, ... as under "a member that others are left of"

SELECT `steady_queue_waiting_executions`.`created_at`,
  `steady_queue_waiting_executions`.`job_id`,
  `steady_queue_waiting_executions`.`queue_name`,
  `steady_queue_waiting_executions`.`rank`, `steady_queue_waiting_executions`.`token`,
  `steady_queue_waiting_executions`.`width`, `steady_queue_waiting_executions`.`due_at`,
  `steady_queue_waiting_executions`.`delay`,
  `steady_queue_waiting_executions`.`concurrency_key`
FROM `steady_queue_waiting_executions`
WHERE `steady_queue_waiting_executions`.`job_id` IN (:job_2)
ORDER BY `steady_queue_waiting_executions`.`job_id` ASC;

SELECT `steady_queue_waiting_executions`.`created_at`,
  `steady_queue_waiting_executions`.`job_id`,
  `steady_queue_waiting_executions`.`queue_name`,
  `steady_queue_waiting_executions`.`rank`, `steady_queue_waiting_executions`.`token`,
  `steady_queue_waiting_executions`.`width`, `steady_queue_waiting_executions`.`due_at`,
  `steady_queue_waiting_executions`.`delay`,
  `steady_queue_waiting_executions`.`concurrency_key`
FROM `steady_queue_waiting_executions`
WHERE `steady_queue_waiting_executions`.`job_id` IN (:job_2)
ORDER BY `steady_queue_waiting_executions`.`job_id` ASC
FOR UPDATE;

SELECT `steady_queue_dependencies`.`job_id` AS `job_id`
FROM `steady_queue_dependencies`
WHERE (
  `steady_queue_dependencies`.`job_id` IN (:job_2)
  AND `steady_queue_dependencies`.`state` IN (2, 3)
);

SELECT UTC_TIMESTAMP(6);

INSERT INTO `steady_queue_ready_executions` (
  `created_at`, `job_id`, `queue_name`, `rank`, `token`, `turn`
)
VALUES (':time', :job_2, 'default', 0, 0, :job_2.0);

DELETE FROM `steady_queue_waiting_executions`
WHERE `steady_queue_waiting_executions`.`job_id` IN (:job_2);

COMMIT;

SELECT id
FROM performance_schema.processlist
WHERE RIGHT(info, 23) = ' AS steady_queue_wakeup' AND db = DATABASE() AND command = 'Query';
