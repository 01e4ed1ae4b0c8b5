-- -------- the present time

SELECT UTC_TIMESTAMP(6);
