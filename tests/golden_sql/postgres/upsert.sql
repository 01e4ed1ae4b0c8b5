-- -------- rows

BEGIN;

SELECT set_config('lock_timeout', '2000ms', true),
  set_config('idle_in_transaction_session_timeout', '8000ms', true);

INSERT INTO "steady_queue_pauses" ("created_at", "queue_name")
SELECT *
FROM UNNEST((ARRAY[':time', ':time'])::timestamp with time zone[], (ARRAY['a', 'b'])::varchar[])
ON CONFLICT("queue_name") DO UPDATE
SET "created_at" = EXCLUDED."created_at";

COMMIT;
