-- -------- rows

INSERT INTO "steady_queue_pauses" ("created_at", "queue_name")
SELECT *
FROM UNNEST((ARRAY[':time', ':time'])::timestamp with time zone[], (ARRAY['a', 'b'])::varchar[])
ON CONFLICT("queue_name") DO UPDATE
SET "created_at" = EXCLUDED."created_at";
