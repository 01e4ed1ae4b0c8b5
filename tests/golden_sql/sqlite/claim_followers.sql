-- -------- nobody waits

SELECT wanted.value
FROM json_each('["key"]') AS wanted
WHERE EXISTS (SELECT 1 FROM steady_queue_blocked_executions WHERE concurrency_key = wanted.value);

-- -------- a job waits

SELECT wanted.value
FROM json_each('["key"]') AS wanted
WHERE EXISTS (SELECT 1 FROM steady_queue_blocked_executions WHERE concurrency_key = wanted.value);

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value AND c.process_id = :process
JOIN steady_queue_permits p ON p.job_id = c.job_id
JOIN steady_queue_semaphores s ON s.key = p.key
WHERE CASE WHEN (
  SELECT count(*) FROM (SELECT 1 FROM steady_queue_permits p WHERE p.key = s.key LIMIT 51)
) > 50 THEN CAST(s.value AS INTEGER) ELSE CAST(s."limit" AS INTEGER) - (
  SELECT count(*) FROM steady_queue_permits p WHERE p.key = s.key
) END >= 0
  AND c.queue_name NOT IN (SELECT queue_name FROM steady_queue_pauses);

SELECT j.id IS NOT NULL
  AND j.finished_at IS NULL
  AND c.job_id IS NULL, CAST(r.job_id AS REAL), r."job_id", CAST(r."token" AS INTEGER),
  r."queue_name", CAST(r."rank" AS INTEGER), j."task_path", j."backend_name",
  j."arguments", CAST(j."attempts" AS INTEGER), CAST(j."max_attempts" AS INTEGER),
  j."worker_ids", j."errors", j."enqueued_at", j."started_at", j."concurrency_key",
  j."metadata"
FROM steady_queue_blocked_executions r
LEFT JOIN steady_queue_jobs j ON j.id = r.job_id
LEFT JOIN steady_queue_claimed_executions c ON c.job_id = r.job_id
WHERE r.concurrency_key = 'key'
ORDER BY r."rank", r.job_id
LIMIT 5;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_blocked_executions WHERE job_id = :job_2;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

COMMIT;
