-- -------- an absent row

BEGIN IMMEDIATE;

SAVEPOINT "savepoint";

INSERT INTO "steady_queue_pauses" ("created_at", "queue_name") VALUES (':time', 'mail');

RELEASE SAVEPOINT "savepoint";

COMMIT;

-- -------- a row that is there

BEGIN IMMEDIATE;

SAVEPOINT "savepoint";

INSERT INTO "steady_queue_pauses" ("created_at", "queue_name") VALUES (':time', 'mail');

ROLLBACK TO SAVEPOINT "savepoint";

RELEASE SAVEPOINT "savepoint";

SELECT "steady_queue_pauses"."created_at", "steady_queue_pauses"."queue_name"
FROM "steady_queue_pauses"
WHERE "steady_queue_pauses"."queue_name" = 'mail'
ORDER BY "steady_queue_pauses"."queue_name" ASC
LIMIT 1;

COMMIT;
