-- -------- an absent row

BEGIN IMMEDIATE;

SAVEPOINT "s140434881989504_x4";

INSERT INTO "steady_queue_pauses" ("created_at", "queue_name") VALUES (':time', 'mail');

RELEASE SAVEPOINT "s140434881989504_x4";

COMMIT;

-- -------- a row that is there

BEGIN IMMEDIATE;

SAVEPOINT "s140434881989504_x5";

INSERT INTO "steady_queue_pauses" ("created_at", "queue_name") VALUES (':time', 'mail');

ROLLBACK TO SAVEPOINT "s140434881989504_x5";

RELEASE SAVEPOINT "s140434881989504_x5";

SELECT "steady_queue_pauses"."created_at", "steady_queue_pauses"."queue_name"
FROM "steady_queue_pauses"
WHERE "steady_queue_pauses"."queue_name" = 'mail'
ORDER BY "steady_queue_pauses"."queue_name" ASC
LIMIT 1;

COMMIT;
