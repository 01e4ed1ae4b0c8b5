-- -------- an absent row

INSERT INTO `steady_queue_pauses` (`created_at`, `queue_name`) VALUES (':time', 'mail');

-- -------- a row that is there

INSERT INTO `steady_queue_pauses` (`created_at`, `queue_name`) VALUES (':time', 'mail');

SELECT `steady_queue_pauses`.`created_at`, `steady_queue_pauses`.`queue_name`
FROM `steady_queue_pauses`
WHERE `steady_queue_pauses`.`queue_name` = 'mail'
ORDER BY `steady_queue_pauses`.`queue_name` ASC
LIMIT 1;
