-- -------- rows

BEGIN;

INSERT INTO `steady_queue_pauses` (`created_at`, `queue_name`)
VALUES (':time', 'a'), (':time', 'b')
ON DUPLICATE KEY UPDATE `created_at` = VALUE(`created_at`);

COMMIT;
