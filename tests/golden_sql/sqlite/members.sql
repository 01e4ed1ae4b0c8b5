-- -------- a job of a batch

BEGIN IMMEDIATE;

SELECT "steady_queue_batches"."id", "steady_queue_batches"."kind",
  "steady_queue_batches"."description", "steady_queue_batches"."backend_name",
  "steady_queue_batches"."metadata", "steady_queue_batches"."callbacks",
  "steady_queue_batches"."member_id", "steady_queue_batches"."created_at",
  "steady_queue_batches"."started_at", "steady_queue_batches"."cancelled_at",
  "steady_queue_batches"."finished_at", "steady_queue_batches"."total",
  "steady_queue_batches"."failed"
FROM "steady_queue_batches"
WHERE "steady_queue_batches"."id" IN (:batch)
ORDER BY "steady_queue_batches"."id" DESC;

DELETE FROM steady_queue_pauses WHERE 0;

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
  NULL, NULL, NULL, false, '{"batch":{"__sq_tuple__":[:batch]}}'
);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_1, 'default', 0, 0, ':time', :job_1);

INSERT INTO "steady_queue_batch_members" ("batch_id", "job_id", "name", "state")
VALUES (:batch, :job_1, '', 0)
RETURNING "steady_queue_batch_members"."id";

COMMIT;

-- -------- a member that others are left of

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

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id",
  "steady_queue_batch_members"."job_id", "steady_queue_batch_members"."name",
  "steady_queue_batch_members"."state"
FROM "steady_queue_batch_members"
WHERE (
  "steady_queue_batch_members"."batch_id" = :batch AND "steady_queue_batch_members"."state" = 0
)
ORDER BY "steady_queue_batch_members"."id" DESC
LIMIT 1;

COMMIT;

-- -------- a member that others are left of, and a claim

BEGIN IMMEDIATE;

WITH own AS (
  SELECT member.id, member.batch_id
  FROM json_each('[:job_1]') AS ended
  JOIN steady_queue_batch_members AS member ON member.job_id = ended.value
  WHERE member.state = 0
)
SELECT 1
FROM (SELECT DISTINCT batch_id FROM own) AS whole
WHERE NOT EXISTS (
  SELECT 1
  FROM steady_queue_batch_members AS other
  WHERE other.batch_id = whole.batch_id
    AND other.state = 0
    AND other.id NOT IN (SELECT id FROM own)
)
LIMIT 1;

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

UPDATE steady_queue_batch_members SET state = 1 WHERE job_id = :job_1 AND state = 0;

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

-- -------- the last member

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

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id", ... as under "a member that others are left of"

SELECT "steady_queue_batches"."id", "steady_queue_batches"."kind",
  "steady_queue_batches"."description", "steady_queue_batches"."backend_name",
  "steady_queue_batches"."metadata", "steady_queue_batches"."callbacks",
  "steady_queue_batches"."member_id", "steady_queue_batches"."created_at",
  "steady_queue_batches"."started_at", "steady_queue_batches"."cancelled_at",
  "steady_queue_batches"."finished_at", "steady_queue_batches"."total",
  "steady_queue_batches"."failed"
FROM "steady_queue_batches"
WHERE "steady_queue_batches"."id" = :batch;

SELECT 1 AS "a"
FROM "steady_queue_batch_members"
WHERE (
  "steady_queue_batch_members"."batch_id" = :batch AND "steady_queue_batch_members"."state" = 0
)
LIMIT 1;

SELECT "steady_queue_batch_members"."state" AS "state",
  COUNT("steady_queue_batch_members"."id") AS "pk__count"
FROM "steady_queue_batch_members"
WHERE "steady_queue_batch_members"."batch_id" = :batch
GROUP BY 1;

DELETE FROM steady_queue_pauses WHERE 0;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_2, 'on_success', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time',
  NULL, NULL, NULL, NULL, false, '{"batch":{"__sq_tuple__":[:batch,false,true]}}'
);

INSERT INTO steady_queue_jobs (
  id, queue_name, task_path, backend_name, "rank", arguments, max_attempts, attempts,
  token, enqueued_at, scheduled_at, concurrency_key, concurrency_limit,
  concurrency_duration, concurrency_discards, metadata
)
VALUES (
  :job_3, 'on_finish', 'conformance.tasks.work', 'default', 0, '{}', 1, 0, 0, ':time',
  NULL, NULL, NULL, NULL, false, '{"batch":{"__sq_tuple__":[:batch,false,true]}}'
);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_2, 'on_success', 0, 0, ':time', :job_2);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_3, 'on_finish', 0, 0, ':time', :job_3);

SELECT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW') || '000');

UPDATE "steady_queue_batches"
SET "finished_at" = ':time', "total" = 1, "failed" = 0,
  "callbacks" = '{"on_success":{"queue_name":"on_success","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_failure":{"queue_name":"on_failure","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_finish":{"queue_name":"on_finish","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"enqueued":[:job_2,:job_3]}'
WHERE "steady_queue_batches"."id" = :batch;

COMMIT;

-- -------- the last member, and a claim

BEGIN IMMEDIATE;

-- WITH own AS ( ... as under "a member that others are left of, and a claim"

COMMIT;

BEGIN IMMEDIATE;

DELETE FROM steady_queue_pauses WHERE 0;

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

UPDATE steady_queue_batch_members SET state = 1 WHERE state = 0 AND job_id IN (:job_1);

-- SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id", ... as under "a member that others are left of"

-- SELECT "steady_queue_batches"."id", "steady_queue_batches"."kind", ... as under "the last member"

-- SELECT 1 AS "a" ... as under "the last member"

SELECT "steady_queue_batch_members"."state" AS "state",
  COUNT("steady_queue_batch_members"."id") AS "pk__count"
FROM "steady_queue_batch_members"
WHERE "steady_queue_batch_members"."batch_id" = :batch
GROUP BY 1;

DELETE FROM steady_queue_pauses WHERE 0;

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs';

-- INSERT INTO steady_queue_jobs ( ... as under "the last member"

-- INSERT INTO steady_queue_jobs ( ... as under "the last member"

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_2, 'on_success', 0, 0, ':time', :job_2);

INSERT OR REPLACE INTO steady_queue_ready_executions (
  job_id, queue_name, "rank", token, created_at, turn
)
VALUES (:job_3, 'on_finish', 0, 0, ':time', :job_3);

SELECT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW') || '000');

UPDATE "steady_queue_batches"
SET "finished_at" = ':time', "total" = 1, "failed" = 0,
  "callbacks" = '{"on_success":{"queue_name":"on_success","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_failure":{"queue_name":"on_failure","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"on_finish":{"queue_name":"on_finish","rank":0,"task_path":"conformance.tasks.work","backend_name":"default","arguments":"{}","max_attempts":1},"enqueued":[:job_2,:job_3]}'
WHERE "steady_queue_batches"."id" = :batch;

SELECT 1 FROM steady_queue_ready_executions LIMIT 1;

DELETE FROM steady_queue_pauses WHERE 0;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT j.id IS NOT NULL ... as under "a member that others are left of, and a claim"

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_3;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'on_success', 0, :token, ':time', :process);

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_3, 'on_finish', 0, :token, ':time', :process);

COMMIT;

-- -------- a member that failed, others are left, and a claim

BEGIN IMMEDIATE;

-- WITH own AS ( ... as under "a member that others are left of, and a claim"

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

UPDATE steady_queue_batch_members SET state = 2 WHERE job_id = :job_1 AND state = 0;

SELECT 1 FROM steady_queue_processes WHERE id = :process AND name = 'worker-0';

SELECT queue_name FROM steady_queue_pauses;

-- SELECT j.id IS NOT NULL ... as under "a member that others are left of, and a claim"

SELECT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000');

DELETE FROM steady_queue_ready_executions WHERE job_id = :job_2;

INSERT INTO steady_queue_claimed_executions (
  job_id, queue_name, "rank", token, created_at, process_id
)
VALUES (:job_2, 'default', 0, :token, ':time', :process);

COMMIT;

-- -------- a member that a job waits for

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

SELECT "steady_queue_batch_members"."id" AS "pk",
  "steady_queue_batch_members"."job_id" AS "job_id",
  "steady_queue_batch_members"."batch_id" AS "batch_id"
FROM "steady_queue_batch_members"
WHERE (
  "steady_queue_batch_members"."job_id" IN (:job_1) AND "steady_queue_batch_members"."state" = 0
)
ORDER BY 1 ASC;

UPDATE "steady_queue_batch_members"
SET "state" = 1
WHERE "steady_queue_batch_members"."id" IN (:member_1);

SELECT "steady_queue_dependencies"."id" AS "pk",
  "steady_queue_dependencies"."job_id" AS "job_id",
  "steady_queue_dependencies"."parent_id" AS "parent_id",
  "steady_queue_dependencies"."run_when" AS "run_when"
FROM "steady_queue_dependencies"
WHERE (
  "steady_queue_dependencies"."parent_id" IN (:member_1)
  AND "steady_queue_dependencies"."state" = 0
)
ORDER BY 1 ASC;

UPDATE "steady_queue_dependencies"
SET "state" = 1
WHERE "steady_queue_dependencies"."id" IN (:dependency);

-- SELECT "steady_queue_batch_members"."id", "steady_queue_batch_members"."batch_id", ... as under "a member that others are left of"

SELECT "steady_queue_waiting_executions"."created_at",
  "steady_queue_waiting_executions"."job_id",
  "steady_queue_waiting_executions"."queue_name",
  "steady_queue_waiting_executions"."rank", "steady_queue_waiting_executions"."token",
  "steady_queue_waiting_executions"."width", "steady_queue_waiting_executions"."due_at",
  "steady_queue_waiting_executions"."delay",
  "steady_queue_waiting_executions"."concurrency_key"
FROM "steady_queue_waiting_executions"
WHERE "steady_queue_waiting_executions"."job_id" IN (:job_2)
ORDER BY "steady_queue_waiting_executions"."job_id" ASC;

SELECT "steady_queue_waiting_executions"."created_at",
  "steady_queue_waiting_executions"."job_id",
  "steady_queue_waiting_executions"."queue_name",
  "steady_queue_waiting_executions"."rank", "steady_queue_waiting_executions"."token",
  "steady_queue_waiting_executions"."width", "steady_queue_waiting_executions"."due_at",
  "steady_queue_waiting_executions"."delay",
  "steady_queue_waiting_executions"."concurrency_key"
FROM "steady_queue_waiting_executions"
WHERE "steady_queue_waiting_executions"."job_id" IN (:job_2)
ORDER BY "steady_queue_waiting_executions"."job_id" ASC;

SELECT "steady_queue_dependencies"."job_id" AS "job_id"
FROM "steady_queue_dependencies"
WHERE (
  "steady_queue_dependencies"."job_id" IN (:job_2)
  AND "steady_queue_dependencies"."state" IN (2, 3)
);

SELECT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW') || '000');

INSERT INTO "steady_queue_ready_executions" (
  "created_at", "job_id", "queue_name", "rank", "token", "turn"
)
VALUES (':time', :job_2, 'default', 0, 0, :job_2.0)
RETURNING "steady_queue_ready_executions"."turn";

DELETE FROM "steady_queue_waiting_executions"
WHERE "steady_queue_waiting_executions"."job_id" IN (:job_2);

COMMIT;
