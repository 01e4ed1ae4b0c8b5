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

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 1, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

COMMIT;

-- -------- finished, and not kept

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_jobs WHERE id = :job_1;

COMMIT;

-- -------- finished, and not kept, with a limit

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_jobs WHERE id = :job_1;

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

DELETE FROM steady_queue_permits WHERE job_id = :job_1;

UPDATE steady_queue_semaphores SET value = value + 1 WHERE key = 'key';

-- SELECT CAST(s."limit" AS INTEGER), ... as under "finished, with a limit"

SELECT job_id
FROM steady_queue_blocked_executions
WHERE concurrency_key = 'key'
ORDER BY "rank", job_id
LIMIT 1;

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 1, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

COMMIT;

-- -------- failed

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = NULL,
  started_at = NULL, last_attempted_at = NULL, finished_at = ':time'
WHERE id = :job_1;

INSERT OR REPLACE INTO steady_queue_failed_executions (
  job_id, created_at, exception_class, message, fingerprint
)
VALUES (:job_1, ':time', 'builtins.ValueError', 'no', '0123456789abcdef');

COMMIT;

-- -------- failed, with a limit

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = NULL,
  started_at = NULL, last_attempted_at = NULL, finished_at = ':time'
WHERE id = :job_1;

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

DELETE FROM steady_queue_permits WHERE job_id = :job_1;

UPDATE steady_queue_semaphores SET value = value + 1 WHERE key = 'key';

INSERT OR REPLACE INTO steady_queue_failed_executions (
  job_id, created_at, exception_class, message, fingerprint
)
VALUES (:job_1, ':time', 'builtins.ValueError', 'no', '0123456789abcdef');

-- SELECT CAST(s."limit" AS INTEGER), ... as under "finished, with a limit"

SELECT job_id
FROM steady_queue_blocked_executions
WHERE concurrency_key = 'key'
ORDER BY "rank", job_id
LIMIT 1;

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 1, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

COMMIT;

-- -------- retried later

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = NULL,
  started_at = NULL, last_attempted_at = NULL, finished_at = NULL
WHERE id = :job_1;

INSERT OR REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, "rank", token, created_at, due_at, concurrency_key
)
VALUES (:job_1, 'default', 0, :token, ':time', ':time', NULL);

COMMIT;

-- -------- retried later, with a limit

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = NULL,
  started_at = NULL, last_attempted_at = NULL, finished_at = NULL
WHERE id = :job_1;

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

DELETE FROM steady_queue_permits WHERE job_id = :job_1;

UPDATE steady_queue_semaphores SET value = value + 1 WHERE key = 'key';

INSERT OR REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, "rank", token, created_at, due_at, concurrency_key
)
VALUES (:job_1, 'default', 0, :token, ':time', ':time', 'key');

-- SELECT CAST(s."limit" AS INTEGER), ... as under "finished, with a limit"

SELECT job_id
FROM steady_queue_blocked_executions
WHERE concurrency_key = 'key'
ORDER BY "rank", job_id
LIMIT 1;

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 1, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

COMMIT;

-- -------- retried at once

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = NULL,
  started_at = NULL, last_attempted_at = NULL, finished_at = NULL
WHERE id = :job_1;

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, :token, ':time', :job_1);

COMMIT;

-- -------- retried at once, with a limit

BEGIN IMMEDIATE;

SELECT c.job_id, c.token
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value
CROSS JOIN steady_queue_jobs j ON j.id = c.job_id;

DELETE FROM steady_queue_claimed_executions WHERE job_id = :job_1 AND token = :token;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

UPDATE steady_queue_jobs
SET attempts = 1, token = :token, worker_ids = NULL, errors = NULL, return_value = NULL,
  started_at = NULL, last_attempted_at = NULL, finished_at = NULL
WHERE id = :job_1;

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

DELETE FROM steady_queue_permits WHERE job_id = :job_1;

UPDATE steady_queue_semaphores SET value = value + 1 WHERE key = 'key';

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

INSERT OR REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, "rank", token, created_at, concurrency_key
)
VALUES (:job_1, 'default', 0, :token, ':time', 'key');

-- SELECT CAST(s."limit" AS INTEGER), ... as under "finished, with a limit"

SELECT job_id
FROM steady_queue_blocked_executions
WHERE concurrency_key = 'key'
ORDER BY "rank", job_id
LIMIT 1;

INSERT OR REPLACE INTO steady_queue_permits (job_id, key) VALUES (:job_1, 'key');

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
SELECT job_id, queue_name, "rank", token,
  (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), job_id
FROM steady_queue_blocked_executions
WHERE job_id = :job_1;

DELETE FROM steady_queue_blocked_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 0, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

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

COMMIT;

-- -------- finished, with an heir

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

UPDATE OR IGNORE steady_queue_permits
SET job_id = :job_2
WHERE job_id = :job_1
  AND EXISTS (
    SELECT 1 FROM steady_queue_claimed_executions WHERE job_id = :job_2 AND token = :token
  );

SELECT p.job_id, p.key
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_permits p ON p.job_id = wanted.value;

-- SELECT CAST(s."limit" AS INTEGER), ... as under "finished, with a limit"

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 0, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

COMMIT;
