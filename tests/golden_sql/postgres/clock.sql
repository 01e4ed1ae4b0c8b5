-- -------- the present time

SELECT STATEMENT_TIMESTAMP();
