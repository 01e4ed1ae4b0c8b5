-- Run on each member before it joins for the first time.
SET sql_log_bin = 0;
CREATE USER copy@'%' IDENTIFIED BY 'change-me-too';
GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO copy@'%';
-- Asks a member for its role: haproxy.cfg logs in as this user.
CREATE USER haproxy_check@'%';
GRANT SELECT ON performance_schema.replication_group_members TO haproxy_check@'%';
SET sql_log_bin = 1;
CHANGE REPLICATION SOURCE TO SOURCE_USER = 'copy', SOURCE_PASSWORD = 'change-me-too'
    FOR CHANNEL 'group_replication_recovery';
