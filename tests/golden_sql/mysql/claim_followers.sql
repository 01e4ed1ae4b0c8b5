-- -------- nobody waits

(
  SELECT concurrency_key
  FROM steady_queue_blocked_executions FORCE INDEX (steady_queue_blocked_release)
  WHERE concurrency_key = 'key'
  LIMIT 1
);

-- -------- a job waits

-- ( ... as under "nobody waits"

SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

START TRANSACTION;

SELECT `key`, value, `limit`
FROM steady_queue_semaphores FORCE INDEX (PRIMARY)
WHERE `key` IN ('key')
ORDER BY `key`
FOR UPDATE SKIP LOCKED;

SELECT queue_name FROM steady_queue_pauses;

(
  SELECT 'key' AS `key`, count(*)
  FROM (
    SELECT 1
    FROM steady_queue_permits FORCE INDEX (steady_queue_permits_key)
    WHERE `key` = 'key'
    LIMIT 51
  ) few
);

SELECT c.job_id, c.token
FROM (SELECT :job_1 AS id) AS given STRAIGHT_JOIN steady_queue_claimed_executions c FORCE INDEX (PRIMARY) ON c.job_id = given.id
  AND c.process_id = :process STRAIGHT_JOIN steady_queue_permits p FORCE INDEX (PRIMARY) ON p.job_id = given.id
FOR UPDATE;

SELECT r.job_id, r.`job_id`, r.`token`, r.`queue_name`, r.`rank`, j.`task_path`,
  j.`backend_name`, j.`arguments`, j.`attempts`, j.`max_attempts`, j.`worker_ids`,
  j.`errors`, j.`enqueued_at`, j.`started_at`, j.`concurrency_key`, j.`metadata`, j.finished_at IS NULL
  AND j.concurrency_key = r.concurrency_key
  AND NOT EXISTS (SELECT 1 FROM steady_queue_claimed_executions c WHERE c.job_id = r.job_id),
  UTC_TIMESTAMP(6), TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))
FROM steady_queue_blocked_executions r FORCE INDEX (steady_queue_blocked_release)
LEFT JOIN steady_queue_jobs j FORCE INDEX (PRIMARY) ON j.id = r.job_id
WHERE r.concurrency_key = 'key'
ORDER BY r.`rank`, r.job_id
LIMIT 5
FOR UPDATE;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, `rank`, token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

DELETE b
FROM (SELECT :job_2 AS id) AS given STRAIGHT_JOIN steady_queue_blocked_executions b FORCE INDEX (PRIMARY) ON b.job_id = given.id;

COMMIT;
