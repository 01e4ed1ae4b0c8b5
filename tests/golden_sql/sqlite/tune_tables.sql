-- -------- as the migration does


