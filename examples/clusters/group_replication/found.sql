-- Run on the first member: it founds the group that the others join. Run it again only if the whole group
-- was down, on the member that was the last to leave.
SET GLOBAL group_replication_bootstrap_group = ON;
START GROUP_REPLICATION;
SET GLOBAL group_replication_bootstrap_group = OFF;
SET PERSIST group_replication_start_on_boot = ON;

CREATE DATABASE IF NOT EXISTS queue CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS queue@'%' IDENTIFIED BY 'change-me';
GRANT ALL ON queue.* TO queue@'%';
