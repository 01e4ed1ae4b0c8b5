"""What a PostgreSQL server suffers from at this moment."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import PROBLEM, Observation, observed, rows_of, tables

from .row_security import hidden_rows

#: Seconds after which a transaction is old.
OLD = 300
#: Bytes of the write-ahead log that a slot keeps from being removed.
KEPT = 10 * 2**30
#: Dead rows of a table, and so many times more than live ones.
DEAD, TIMES = 500_000, 10
#: The share of the connections from which on few are left.
USED = 0.9
#: So many alike are told of.
MOST = 3
#: Tables whose rows live for seconds.
HOT = [tables.READY, tables.CLAIMED, tables.SCHEDULED, tables.BLOCKED, tables.PERMITS]
OURS = sorted(name for constant, name in vars(tables).items() if constant.isupper())

TRANSACTIONS = """
SELECT pid, usename, application_name, state,
       round(extract(epoch FROM clock_timestamp() - xact_start))::bigint AS age
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
  AND xact_start < clock_timestamp() - make_interval(secs => %s)
  AND backend_type = 'client backend'
ORDER BY xact_start LIMIT %s"""
PREPARED = """
SELECT gid, owner, round(extract(epoch FROM clock_timestamp() - prepared))::bigint
FROM pg_prepared_xacts
WHERE database = current_database()
  AND prepared < clock_timestamp() - make_interval(secs => %s)
ORDER BY prepared LIMIT %s"""
SLOTS = """
SELECT slot_name, xmin IS NOT NULL,
       CASE WHEN pg_is_in_recovery() THEN 0
            ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END AS kept
FROM pg_replication_slots
WHERE NOT active AND (xmin IS NOT NULL OR NOT pg_is_in_recovery()
  AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > %s)
ORDER BY slot_name LIMIT %s"""
INVALID = """
SELECT index.relname, owner.relname
FROM pg_index JOIN pg_class index ON index.oid = indexrelid
JOIN pg_class owner ON owner.oid = indrelid
WHERE NOT indisvalid AND indrelid IN (
  SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
ORDER BY index.relname LIMIT %s"""
VACUUM = """
SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean,
       array(SELECT relname::text FROM pg_class
             WHERE oid IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
               AND 'autovacuum_enabled=false' = ANY (reloptions) ORDER BY relname)"""
BLOAT = """
SELECT relname, n_dead_tup, n_live_tup
FROM pg_stat_all_tables
WHERE relid IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
  AND n_dead_tup > %s AND n_dead_tup > %s * n_live_tup
ORDER BY n_dead_tup DESC LIMIT %s"""
CONNECTIONS = """
SELECT sum(numbackends), current_setting('max_connections')::int FROM pg_stat_database"""

# Modes in which nobody else may write to a table, or even read it; vacuum and index builds have
# lesser ones.
LOCKS = """
SELECT held.relation::regclass::text, held.pid, held.mode, coalesce(session.usename, ''),
       coalesce(session.application_name, '')
FROM pg_locks AS held LEFT JOIN pg_stat_activity AS session ON session.pid = held.pid
WHERE held.granted AND held.pid <> pg_backend_pid()
  AND held.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  AND held.relation IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY 1, 2 LIMIT %s"""


def locked_tables(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for table, pid, mode, user, program in rows_of(connection, LOCKS, OURS, MOST):
        yield Observation(
            "table-locked",
            f"User {user} ({program or 'no application_name'}, backend {pid}) has locked the table "
            f"{table} ({mode}): nobody else can write to it.",
            f"See what it does, and wait, or end it: SELECT pg_terminate_backend({pid})",
            PROBLEM,
        )


def old_transactions(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for pid, user, program, state, age in rows_of(connection, TRANSACTIONS, OLD, MOST):
        yield Observation(
            "transaction-old",
            f"A transaction of user {user} ({program or 'no application_name'}, backend {pid}, "
            f"{state}) has been open for {age} s: no dead row is removed meanwhile, and polls get "
            "slower.",
            f"See what it does. To end it: SELECT pg_terminate_backend({pid}). Against the next "
            "one: idle_in_transaction_session_timeout.",
        )


def prepared_transactions(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for gid, owner, age in rows_of(connection, PREPARED, OLD, MOST):
        yield Observation(
            "transaction-prepared",
            f"The transaction {gid!r} of user {owner} was prepared {age} s ago and has not ended: "
            "it keeps its locks, and no dead row is removed.",
            "Run COMMIT PREPARED or ROLLBACK PREPARED with that name.",
        )


def replication_slots(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for name, has_xmin, kept in rows_of(connection, SLOTS, KEPT, MOST):
        what = "dead rows" if has_xmin else f"{kept / 2**30:.1f} GiB of the write-ahead log"
        yield Observation(
            "replication-slot",
            f"The replication slot {name!r} is not in use, and keeps {what} from being removed.",
            f"Start what reads it, or: SELECT pg_drop_replication_slot('{name}')",
        )


def invalid_indexes(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for index, table in rows_of(connection, INVALID, OURS, MOST):
        yield Observation(
            "index-invalid",
            f"The index {index} of table {table} is invalid: no query uses it.",
            f"Run: REINDEX INDEX CONCURRENTLY {index}",
            PROBLEM,
        )


def autovacuum(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    [(is_on, without)] = rows_of(connection, VACUUM, OURS)
    if not is_on:
        yield Observation(
            "autovacuum-off",
            "autovacuum or track_counts is off: nobody removes dead rows, and polls get slower.",
            "Turn both on in postgresql.conf.",
        )
    if without:
        yield Observation(
            "autovacuum-off",
            f"autovacuum is off for {', '.join(without)}: nobody removes their dead rows.",
            f"Run: ALTER TABLE {without[0]} RESET (autovacuum_enabled)",
        )


def bloat(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for table, dead, live in rows_of(connection, BLOAT, HOT, DEAD, TIMES, MOST):
        yield Observation(
            "table-bloat",
            f"Table {table} has {dead:,} dead rows and {live:,} live ones: polls read them all.",
            f"Run: VACUUM {table}. If they stay, see which old transaction keeps them.",
        )


def used_connections(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    [(used, most)] = rows_of(connection, CONNECTIONS)
    if used is not None and used >= USED * most:
        yield Observation(
            "connections-few",
            f"{used} of {most} connections of the server are in use: soon it refuses others.",
            "Run fewer threads and processes, use a pool, or raise max_connections.",
        )


LOOKS = (
    locked_tables,
    hidden_rows,
    old_transactions,
    prepared_transactions,
    replication_slots,
    invalid_indexes,
    autovacuum,
    bloat,
    used_connections,
)


def examine(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    """Yield what keeps the server from working well for the queue."""
    return observed(connection, LOOKS)
