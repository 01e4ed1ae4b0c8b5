-- Once, at the primary: whom the project logs in as, and the queue's database.
CREATE ROLE queue LOGIN PASSWORD 'change-me';
CREATE DATABASE queue OWNER queue;
