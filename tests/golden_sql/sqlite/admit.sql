-- -------- a key with a waiting job

BEGIN IMMEDIATE;

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

-- -------- an unknown key

BEGIN IMMEDIATE;

-- SELECT CAST(s."limit" AS INTEGER), ... as under "a key with a waiting job"

SELECT (
  SELECT CAST(j.concurrency_limit AS INTEGER)
  FROM steady_queue_blocked_executions b
  JOIN steady_queue_jobs j ON j.id = b.job_id
  WHERE b.concurrency_key = 'key'
  ORDER BY b."rank", b.job_id
  LIMIT 1
),
  (SELECT count(*) FROM steady_queue_permits WHERE key = 'key');

COMMIT;
