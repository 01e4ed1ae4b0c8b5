-- -------- finished

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = '1',
  started_at = NULL, last_attempted_at = NULL, finished_at = ':time'
WHERE id = :job_1;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

SELECT j.id IS NOT NULL
  AND j.finished_at IS NULL
  AND c.job_id IS NULL, CAST(r.turn AS REAL), r."job_id", CAST(r."token" AS INTEGER),
  r."queue_name", CAST(r."rank" AS INTEGER), j."task_path", j."backend_name",
  j."arguments", CAST(j."attempts" AS INTEGER), CAST(j."max_attempts" AS INTEGER),
  j."worker_ids", j."errors", j."enqueued_at", j."started_at", j."concurrency_key",
  j."metadata"
FROM steady_queue_ready_executions r
LEFT JOIN steady_queue_jobs j ON j.id = r.job_id
LEFT JOIN steady_queue_claimed_executions c ON c.job_id = r.job_id
ORDER BY r."rank", r.turn
LIMIT 2;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

COMMIT;

-- -------- finished, with a limit

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = '1',
  started_at = NULL, last_attempted_at = NULL, finished_at = ':time'
WHERE id = :job_1;

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

DELETE FROM steady_queue_permits WHERE job_id = :job_1;

UPDATE steady_queue_semaphores SET value = value + 1 WHERE key = 'key';

SELECT CAST(s."limit" AS INTEGER),
  CASE WHEN (
    SELECT count(*) FROM (SELECT 1 FROM steady_queue_permits p WHERE p.key = s.key LIMIT 51)
  ) > 50 THEN CAST(s.value AS INTEGER) ELSE CAST(s."limit" AS INTEGER) - (
    SELECT count(*) FROM steady_queue_permits p WHERE p.key = s.key
  ) END
FROM steady_queue_semaphores s
WHERE key = 'key';

SELECT job_id
FROM steady_queue_blocked_executions
WHERE concurrency_key = 'key'
ORDER BY "rank", job_id
LIMIT 1;

INSERT OR REPLACE INTO steady_queue_permits (job_id, key) VALUES (:job_2, 'key');

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
SELECT job_id, queue_name, "rank", token,
  (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), job_id
FROM steady_queue_blocked_executions
WHERE job_id = :job_2;

DELETE FROM steady_queue_blocked_executions WHERE job_id = :job_2;

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 0, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT j.id IS NOT NULL ... as under "finished"

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

COMMIT;

-- -------- released

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, :token, ':time', :job_1);

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT j.id IS NOT NULL ... as under "finished"

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_1;

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

COMMIT;

-- -------- released, with a limit

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, :token, ':time', :job_1);

-- SELECT CAST(s."limit" AS INTEGER), ... as under "finished, with a limit"

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 0, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT j.id IS NOT NULL ... as under "finished"

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_1, 'default', 0, :token, ':time', :process);

COMMIT;
