-- -------- one job

BEGIN IMMEDIATE;

INSERT INTO steady_queue_jobs (
  queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts, token,
  enqueued_at, concurrency_discards
)
VALUES (
  'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0,
  (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), false
)
RETURNING id, enqueued_at;

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
SELECT id, queue_name, "rank", 0, enqueued_at, id
FROM steady_queue_jobs
WHERE id = :job_1;

COMMIT;

-- -------- several jobs that are alike

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_1, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  NULL, NULL, NULL, false, NULL
);

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_2, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  NULL, NULL, NULL, false, NULL
);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, 0, ':time', :job_1);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_2, 'default', 0, 0, ':time', :job_2);

COMMIT;

-- -------- several jobs

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

-- INSERT INTO steady_queue_jobs ( ... as under "several jobs that are alike"

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_2, 'mail', 'conformance.tasks.work', 'default', -5, '{}', 1, 0, 0, ':time', NULL,
  NULL, NULL, NULL, false, NULL
);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, 0, ':time', :job_1);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_2, 'mail', -5, 0, ':time', :job_2);

COMMIT;

-- -------- a job with a delay

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_1, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time',
  ':time', NULL, NULL, NULL, false, NULL
);

INSERT OR REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, "rank", token, created_at, due_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, ':time', ':time', NULL);

COMMIT;

-- -------- a job for an instant

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

-- INSERT INTO steady_queue_jobs ( ... as under "a job with a delay"

INSERT OR REPLACE INTO steady_queue_scheduled_executions (
  job_id, queue_name, "rank", token, created_at, due_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, ':time', ':time', NULL);

COMMIT;

-- -------- a job with a limit

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_1, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  'key', 1, 180000000, false, NULL
);

INSERT OR REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, "rank", token, created_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, ':time', 'key');

SELECT CAST(s."limit" AS INTEGER),
  CASE WHEN (
    SELECT count(*) FROM (SELECT 1 FROM steady_queue_permits p WHERE p.key = s.key LIMIT 51)
  ) > 50 THEN CAST(s.value AS INTEGER) ELSE CAST(s."limit" AS INTEGER) - (
    SELECT count(*) FROM steady_queue_permits p WHERE p.key = s.key
  ) END
FROM steady_queue_semaphores s
WHERE key = 'key';

SELECT (
  SELECT CAST(j.concurrency_limit AS INTEGER)
  FROM steady_queue_blocked_executions b
  JOIN steady_queue_jobs j ON j.id = b.job_id
  WHERE b.concurrency_key = 'key'
  ORDER BY b."rank", b.job_id
  LIMIT 1
),
  (SELECT count(*) FROM steady_queue_permits WHERE key = 'key');

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

-- -------- jobs of one key

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_1, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  'key', 2, 180000000, false, NULL
);

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_2, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  'key', 2, 180000000, false, NULL
);

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_3, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  'key', 2, 180000000, false, NULL
);

INSERT OR REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, "rank", token, created_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, ':time', 'key');

INSERT OR REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, "rank", token, created_at, concurrency_key
)
VALUES (:job_2, 'default', 0, 0, ':time', 'key');

INSERT OR REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, "rank", token, created_at, concurrency_key
)
VALUES (:job_3, 'default', 0, 0, ':time', 'key');

-- SELECT CAST(s."limit" AS INTEGER), ... as under "a job with a limit"

-- SELECT ( ... as under "a job with a limit"

SELECT job_id
FROM steady_queue_blocked_executions
WHERE concurrency_key = 'key'
ORDER BY "rank", job_id
LIMIT 2;

INSERT OR REPLACE INTO steady_queue_permits (job_id, key) VALUES (:job_1, 'key');

INSERT OR REPLACE INTO steady_queue_permits (job_id, key) VALUES (:job_2, 'key');

-- INSERT OR REPLACE INTO steady_queue_ready_executions ( ... as under "a job with a limit"

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
SELECT job_id, queue_name, "rank", token,
  (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), job_id
FROM steady_queue_blocked_executions
WHERE job_id = :job_2;

DELETE FROM steady_queue_blocked_executions WHERE job_id = :job_1;

DELETE FROM steady_queue_blocked_executions WHERE job_id = :job_2;

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 0, 2)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

COMMIT;

-- -------- a job that rather is not run than waits

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_1, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  'key', 1, 180000000, true, NULL
);

INSERT OR REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, "rank", token, created_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, ':time', 'key');

-- SELECT CAST(s."limit" AS INTEGER), ... as under "a job with a limit"

-- SELECT ( ... as under "a job with a limit"

SELECT job_id
FROM steady_queue_blocked_executions
WHERE concurrency_key = 'key'
ORDER BY "rank", job_id
LIMIT 1;

INSERT OR REPLACE INTO steady_queue_permits (job_id, key) VALUES (:job_1, 'key');

-- INSERT OR REPLACE INTO steady_queue_ready_executions ( ... as under "a job with a limit"

DELETE FROM steady_queue_blocked_executions WHERE job_id = :job_1;

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 0, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

SELECT b.job_id, j.metadata
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_blocked_executions b ON b.job_id = wanted.value AND b.token < 4294967296
CROSS JOIN steady_queue_jobs j ON j.id = b.job_id AND j.concurrency_discards;

COMMIT;
