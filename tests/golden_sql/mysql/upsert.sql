-- -------- rows

BEGIN;

INSERT INTO `steady_queue_pauses` (`created_at`, `queue_name`)
VALUES (':time', 'a'), (':time', 'b') AS new
ON DUPLICATE KEY UPDATE `created_at` = new.`created_at`;

COMMIT;
