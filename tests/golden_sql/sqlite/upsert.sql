-- -------- rows

BEGIN IMMEDIATE;

DELETE FROM steady_queue_pauses WHERE 0;

INSERT INTO "steady_queue_pauses" ("created_at", "queue_name")
VALUES (':time', 'a'), (':time', 'b')
ON CONFLICT("queue_name") DO UPDATE
SET "created_at" = EXCLUDED."created_at";

COMMIT;
