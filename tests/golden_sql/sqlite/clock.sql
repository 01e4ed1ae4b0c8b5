-- -------- the present time

SELECT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW') || '000');
