"""What a MySQL or MariaDB server suffers from at this moment."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import PROBLEM, Observation, observed, rows_of, tables

from .server import server_of

#: Seconds after which a transaction is old.
OLD = 300
#: Old versions of rows that the server keeps.
HISTORY = 1_000_000
#: The share of the connections from which on few are left.
USED = 0.9
#: So many alike are told of.
MOST = 3
OURS = sorted(name for constant, name in vars(tables).items() if constant.isupper())

# InnoDB tells times in the zone of the server's host, whatever that of the session is.
TRANSACTIONS = """
SELECT trx_mysql_thread_id, COALESCE(user, ''), COALESCE(command, ''), trx_state,
       TIMESTAMPDIFF(SECOND, CONVERT_TZ(trx_started, 'SYSTEM', '+00:00'), UTC_TIMESTAMP())
FROM information_schema.innodb_trx
LEFT JOIN information_schema.processlist ON id = trx_mysql_thread_id
WHERE trx_mysql_thread_id <> CONNECTION_ID()
  AND CONVERT_TZ(trx_started, 'SYSTEM', '+00:00') <= UTC_TIMESTAMP() - INTERVAL %s SECOND
ORDER BY trx_started LIMIT %s"""
# MySQL's table of processes warns that it is old; the other one is not there on MariaDB.
PROCESSES = "information_schema.processlist", "performance_schema.processlist"
ASK_HISTORY = """
SELECT `count` FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"""
ASK_UNUSED = """
SELECT DISTINCT table_name, index_name FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name IN ({marks}) AND {unused}
ORDER BY 1, 2 LIMIT %s"""
# MariaDB before 11.1 has the other name.
ISOLATION = "SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')"
CONNECTED = "SHOW GLOBAL STATUS LIKE 'Threads_connected'"


def old_transactions(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    sql = TRANSACTIONS
    if not server_of(connection).is_mariadb:
        sql = sql.replace(*PROCESSES)
    for thread, user, command, state, age in rows_of(connection, sql, OLD, MOST):
        yield Observation(
            "transaction-old",
            f"A transaction of user {user or 'unknown'} (connection {thread}, {command}, "
            f"{state}) has been open for {age} s: the server keeps all old versions of rows "
            "meanwhile, and polls get slower.",
            f"See what it does. To end it: KILL {thread}",
        )


def history(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for (length,) in rows_of(connection, ASK_HISTORY):
        if length is not None and length > HISTORY:
            yield Observation(
                "history-long",
                f"The server keeps {length:,} old versions of rows (history list length): polls "
                "read over them.",
                "End the oldest transactions; then the purge threads catch up.",
            )


def unused_indexes(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    unused = "ignored = 'YES'" if server_of(connection).is_mariadb else "is_visible = 'NO'"
    verb = "NOT IGNORED" if server_of(connection).is_mariadb else "VISIBLE"
    sql = ASK_UNUSED.format(marks=", ".join(["%s"] * len(OURS)), unused=unused)
    for table, index in rows_of(connection, sql, *OURS, MOST):
        yield Observation(
            "index-invalid",
            f"The index {index} of table {table} is switched off: no query uses it.",
            f"Run: ALTER TABLE {table} ALTER INDEX {index} {verb}",
            PROBLEM,
        )


def used_connections(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    [(_, used)] = rows_of(connection, CONNECTED)
    [(most,)] = rows_of(connection, "SELECT @@max_connections")
    if int(used) >= USED * int(most):
        yield Observation(
            "connections-few",
            f"{used} of {most} connections of the server are in use: soon it refuses others.",
            "Run fewer threads and processes, or raise max_connections.",
        )


def isolation(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    # The queue's own transactions are READ COMMITTED; those of the project need not be.
    if "SERIALIZABLE" in dict(rows_of(connection, ISOLATION)).values():
        yield Observation(
            "isolation-serializable",
            f"Transactions of the project on database {connection.alias!r} are SERIALIZABLE: "
            "whatever they read is locked, with the gaps between, and claims wait for it.",
            "Set OPTIONS['isolation_level'] of the database to 'read committed'.",
        )


LOOKS = (isolation, old_transactions, history, unused_indexes, used_connections)


def examine(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    """Yield what keeps the server from working well for the queue."""
    return observed(connection, LOOKS)
