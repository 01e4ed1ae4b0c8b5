-- Run once on each other member. From then on it joins by itself when it starts.
START GROUP_REPLICATION;
SET PERSIST group_replication_start_on_boot = ON;
