-- -------- a job with a key

BEGIN IMMEDIATE;

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

DELETE FROM steady_queue_pauses WHERE 0;

INSERT INTO "steady_queue_unique_keys" ("key", "job_id", "expires_at", "ticket")
VALUES ('a', NULL, NULL, :token)
ON CONFLICT("key") DO UPDATE
SET "ticket" = EXCLUDED."ticket";

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

DELETE FROM steady_queue_pauses WHERE 0;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_1, 'default', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time', NULL,
  NULL, NULL, NULL, false, '{"unique":{"__sq_tuple__":["a"]}}'
);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, 0, ':time', :job_1);

DELETE FROM steady_queue_pauses WHERE 0;

INSERT INTO "steady_queue_unique_keys" ("key", "job_id", "expires_at", "ticket")
VALUES ('a', :job_1, NULL, :token)
ON CONFLICT("key") DO UPDATE
SET "job_id" = EXCLUDED."job_id", "expires_at" = EXCLUDED."expires_at";

COMMIT;

-- -------- a duplicate

BEGIN IMMEDIATE;

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

SELECT "steady_queue_jobs"."id", "steady_queue_jobs"."queue_name",
  "steady_queue_jobs"."task_path", "steady_queue_jobs"."backend_name",
  "steady_queue_jobs"."rank", "steady_queue_jobs"."concurrency_key",
  "steady_queue_jobs"."concurrency_limit", "steady_queue_jobs"."concurrency_duration",
  "steady_queue_jobs"."concurrency_discards", "steady_queue_jobs"."max_attempts",
  "steady_queue_jobs"."attempts", "steady_queue_jobs"."token",
  "steady_queue_jobs"."enqueued_at", "steady_queue_jobs"."scheduled_at",
  "steady_queue_jobs"."started_at", "steady_queue_jobs"."last_attempted_at",
  "steady_queue_jobs"."finished_at", "steady_queue_claimed_executions"."created_at",
  "steady_queue_claimed_executions"."job_id",
  "steady_queue_claimed_executions"."queue_name",
  "steady_queue_claimed_executions"."rank", "steady_queue_claimed_executions"."token",
  "steady_queue_claimed_executions"."process_id"
FROM "steady_queue_jobs"
LEFT OUTER
JOIN "steady_queue_claimed_executions" ON (
  "steady_queue_jobs"."id" = "steady_queue_claimed_executions"."job_id"
)
WHERE "steady_queue_jobs"."id" IN (:job_1);

COMMIT;

-- -------- a job that replaces another one

BEGIN IMMEDIATE;

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

-- SELECT "steady_queue_jobs"."id", "steady_queue_jobs"."queue_name", ... as under "a duplicate"

DELETE FROM steady_queue_pauses WHERE 0;

INSERT INTO "steady_queue_unique_keys" ("key", "job_id", "expires_at", "ticket")
VALUES ('a', NULL, NULL, :token)
ON CONFLICT("key") DO UPDATE
SET "ticket" = EXCLUDED."ticket";

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a');

-- SELECT "steady_queue_jobs"."id", "steady_queue_jobs"."queue_name", ... as under "a duplicate"

SELECT "steady_queue_jobs"."id" AS "pk",
  "steady_queue_jobs"."concurrency_key" AS "concurrency_key",
  "steady_queue_jobs"."metadata" AS "metadata"
FROM "steady_queue_jobs"
WHERE "steady_queue_jobs"."id" IN (:job_1)
ORDER BY 1 ASC;

SELECT "steady_queue_scheduled_executions"."created_at",
  "steady_queue_scheduled_executions"."job_id",
  "steady_queue_scheduled_executions"."queue_name",
  "steady_queue_scheduled_executions"."rank", "steady_queue_scheduled_executions"."token",
  "steady_queue_scheduled_executions"."due_at",
  "steady_queue_scheduled_executions"."concurrency_key"
FROM "steady_queue_scheduled_executions"
WHERE "steady_queue_scheduled_executions"."job_id" = :job_1;

SELECT "steady_queue_blocked_executions"."created_at",
  "steady_queue_blocked_executions"."job_id",
  "steady_queue_blocked_executions"."queue_name",
  "steady_queue_blocked_executions"."rank", "steady_queue_blocked_executions"."token",
  "steady_queue_blocked_executions"."concurrency_key"
FROM "steady_queue_blocked_executions"
WHERE "steady_queue_blocked_executions"."job_id" = :job_1;

SELECT "steady_queue_ready_executions"."created_at",
  "steady_queue_ready_executions"."job_id", "steady_queue_ready_executions"."queue_name",
  "steady_queue_ready_executions"."rank", "steady_queue_ready_executions"."token",
  "steady_queue_ready_executions"."turn"
FROM "steady_queue_ready_executions"
WHERE "steady_queue_ready_executions"."job_id" = :job_1;

DELETE FROM "steady_queue_ready_executions"
WHERE "steady_queue_ready_executions"."job_id" = :job_1;

SELECT "steady_queue_permits"."job_id", "steady_queue_permits"."key"
FROM "steady_queue_permits"
WHERE "steady_queue_permits"."job_id" IN (:job_1);

SELECT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW') || '000');

UPDATE "steady_queue_jobs"
SET "queue_name" = 'mail', "task_path" = 'conformance.tasks.work',
  "backend_name" = 'default', "rank" = 0, "arguments" = '{}',
  "metadata" = '{"unique":{"__sq_tuple__":["a","finished",{"__sq_timedelta__":[0,0,0]},"replace"]}}',
  "max_attempts" = 1, "token" = 1, "enqueued_at" = ':time', "scheduled_at" = NULL,
  "concurrency_key" = NULL, "concurrency_limit" = NULL, "concurrency_duration" = NULL,
  "concurrency_discards" = false
WHERE "steady_queue_jobs"."id" = :job_1;

INSERT INTO "steady_queue_ready_executions" (
  "created_at", "job_id", "queue_name", "rank", "token", "turn"
)
VALUES (':time', :job_1, 'mail', 0, 1, :job_1.0)
RETURNING "steady_queue_ready_executions"."turn";

COMMIT;

-- -------- the end of a job

BEGIN IMMEDIATE;

DELETE FROM steady_queue_pauses WHERE 0;

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

DELETE FROM "steady_queue_unique_keys"
WHERE "key" = 'a' AND ("job_id" = :job_1 OR "job_id" IS NULL);

COMMIT;

-- -------- the end of a job that keeps its key

BEGIN IMMEDIATE;

DELETE FROM steady_queue_pauses WHERE 0;

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

SELECT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW') || '000');

UPDATE "steady_queue_unique_keys"
SET "expires_at" = ':time'
WHERE ("steady_queue_unique_keys"."job_id" = :job_1 AND "steady_queue_unique_keys"."key" = 'a');

COMMIT;

-- -------- the start of a job that gives its key up

BEGIN IMMEDIATE;

SELECT "steady_queue_claimed_executions"."job_id" AS "pk",
  "steady_queue_claimed_executions"."token" AS "token"
FROM "steady_queue_claimed_executions"
WHERE "steady_queue_claimed_executions"."job_id" IN (:job_1);

SELECT "steady_queue_unique_keys"."key", "steady_queue_unique_keys"."job_id",
  "steady_queue_unique_keys"."expires_at", "steady_queue_unique_keys"."ticket"
FROM "steady_queue_unique_keys"
WHERE "steady_queue_unique_keys"."key" IN ('a')
ORDER BY "steady_queue_unique_keys"."key" ASC;

DELETE FROM "steady_queue_unique_keys"
WHERE "key" = 'a' AND ("job_id" = :job_1 OR "job_id" IS NULL);

SELECT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW') || '000');

UPDATE "steady_queue_jobs"
SET "started_at" = ':time'
WHERE ("steady_queue_jobs"."id" IN (:job_1) AND "steady_queue_jobs"."started_at" IS NULL);

COMMIT;
