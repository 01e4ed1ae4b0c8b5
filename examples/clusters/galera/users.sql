-- Run once, on the first node; the others copy it.
CREATE DATABASE queue CHARACTER SET utf8mb4;
CREATE USER queue@'%' IDENTIFIED BY 'change-me';
GRANT ALL ON queue.* TO queue@'%';
-- Copies a node to one that joins.
CREATE USER copy@localhost IDENTIFIED BY 'change-me-too';
GRANT RELOAD, PROCESS, LOCK TABLES, BINLOG MONITOR ON *.* TO copy@localhost;
-- Asks a node for its state and may nothing else: haproxy.cfg logs in as this user.
CREATE USER haproxy_check@'%';
