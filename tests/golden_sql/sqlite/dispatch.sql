-- -------- due jobs

SELECT 1
FROM steady_queue_scheduled_executions
WHERE due_at <= (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
LIMIT 1;

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT job_id, queue_name, "rank", token, concurrency_key
FROM steady_queue_scheduled_executions
WHERE due_at <= ':time'
ORDER BY due_at, "rank", job_id
LIMIT 10;

DELETE FROM steady_queue_scheduled_executions WHERE job_id = :job_1;

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, 0, ':time', :job_1);

COMMIT;

SELECT min(due_at) FROM steady_queue_scheduled_executions;

-- -------- a due job with a limit

SELECT 1
FROM steady_queue_scheduled_executions
WHERE due_at <= (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
LIMIT 1;

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT job_id, queue_name, "rank", token, concurrency_key
FROM steady_queue_scheduled_executions
WHERE due_at <= ':time'
ORDER BY due_at, "rank", job_id
LIMIT 10;

DELETE FROM steady_queue_scheduled_executions WHERE job_id = :job_1;

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

SELECT b.job_id, j.metadata
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_blocked_executions b ON b.job_id = wanted.value AND b.token < 4294967296
CROSS JOIN steady_queue_jobs j ON j.id = b.job_id AND j.concurrency_discards;

COMMIT;

SELECT min(due_at) FROM steady_queue_scheduled_executions;

-- -------- a due job with a limit that finds no permit

SELECT 1
FROM steady_queue_scheduled_executions
WHERE due_at <= (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
LIMIT 1;

BEGIN IMMEDIATE;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT job_id, queue_name, "rank", token, concurrency_key
FROM steady_queue_scheduled_executions
WHERE due_at <= ':time'
ORDER BY due_at, "rank", job_id
LIMIT 10;

DELETE FROM steady_queue_scheduled_executions WHERE job_id = :job_1;

INSERT OR REPLACE INTO steady_queue_blocked_executions (
  job_id, queue_name, "rank", token, created_at, concurrency_key
)
VALUES (:job_1, 'default', 0, 0, ':time', 'key');

-- SELECT CAST(s."limit" AS INTEGER), ... as under "a due job with a limit"

INSERT INTO steady_queue_semaphores (key, value, "limit")
VALUES ('key', 0, 1)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, "limit" = excluded."limit";

SELECT b.job_id, j.metadata
FROM json_each('[:job_1]') AS wanted
CROSS JOIN steady_queue_blocked_executions b ON b.job_id = wanted.value AND b.token < 4294967296
CROSS JOIN steady_queue_jobs j ON j.id = b.job_id AND j.concurrency_discards;

DELETE FROM steady_queue_blocked_executions WHERE job_id = :job_1;

DELETE FROM steady_queue_jobs WHERE id = :job_1;

COMMIT;

SELECT min(due_at) FROM steady_queue_scheduled_executions;

-- -------- nothing is due

SELECT 1
FROM steady_queue_scheduled_executions
WHERE due_at <= (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
LIMIT 1;

SELECT min(due_at) FROM steady_queue_scheduled_executions;
