"""System checks of a server that holds a queue, and of the connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported, portable, tables

from .errors import DENIED, error_number
from .galera import check_galera, is_serving
from .group import check_group
from .server import Server, server_of

VARIABLES = ("sql_mode", "read_only", "binlog_format", "time_zone", "character_set_connection")
#: Bytes that a job with its arguments and result may need.
SMALL_PACKET = 1 << 20
NEEDED = ("SELECT", "INSERT", "UPDATE", "DELETE")

ASK_TABLES = """
SELECT table_name, engine FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ({marks}) AND engine <> 'InnoDB'"""
ASK_INSTANTS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name IN ({marks})
  AND data_type = 'datetime' AND datetime_precision < 6"""
ASK_TEXTS = """
SELECT table_name, column_name, character_set_name FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name IN ({marks})
  AND character_set_name <> 'utf8mb4' AND data_type = 'longtext'"""
ASK_NAMES = """
SELECT table_name, column_name, collation_name FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name IN ({marks})
  AND column_name IN ('queue_name', 'key', 'task_key', 'concurrency_key')
  AND collation_name <> %s"""
# The user's privileges on the columns of a table; tables without any are not listed.
ASK_PRIVILEGES = """
SELECT table_name, privileges FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name IN ({marks}) AND ordinal_position = 1"""
#: The schema hides a table that one may not use at all, as if it were not there.
ASK_ROWS = "SELECT 1 FROM {} WHERE 1 = 0"
#: The schema does not tell whether rows may be deleted, but EXPLAIN needs the same privilege.
EXPLAIN_DELETE = "EXPLAIN DELETE {} FROM {} WHERE 1 = 0"
OUR_TABLES = sorted(
    name for constant, name in vars(tables).items() if constant.isupper()
)  # fmt: skip


def run(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    """Return a message for each problem, with a hint how to mend it."""
    try:
        server = server_of(connection)
    except DialectUnsupported as error:
        return [Error(str(error), id="steady_queue.E001")]
    cluster = _of_cluster(connection, server)
    if server.is_galera and not is_serving(connection):
        return cluster  # It would refuse whatever else is asked.
    return [
        *portable.check_zone(connection, id="steady_queue.E301"),
        *_of_variables(connection, server),
        *cluster,
        *_of_tables(connection, server),
        *_of_privileges(connection),
    ]


def _of_cluster(connection: BaseDatabaseWrapper, server: Server) -> list[CheckMessage]:
    if server.is_galera:
        return list(check_galera(connection))
    return [] if server.is_mariadb else list(check_group(connection))


def _of_variables(connection: BaseDatabaseWrapper, server: Server) -> Iterator[CheckMessage]:
    alias = connection.alias
    values = _variables(connection)
    modes = set(values.get("sql_mode", "").upper().split(","))
    if not modes & {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"}:
        yield Warning(
            f"sql_mode of database {alias!r} is not strict: values that are too long are cut.",
            hint="Add STRICT_TRANS_TABLES to sql_mode, in the server's or Django's settings.",
            id="steady_queue.W302",
        )
    if "NO_BACKSLASH_ESCAPES" in modes:
        yield Warning(
            f"sql_mode of database {alias!r} has NO_BACKSLASH_ESCAPES: Django's lookups such as "
            "contains and startswith do not find texts with _, % or a backslash. The queue itself "
            "works.",
            hint="Remove it from sql_mode, in the server's or Django's settings.",
            id="steady_queue.W303",
        )
    if values.get("read_only", "OFF").upper() not in ("OFF", "0"):
        yield Error(
            f"Database {alias!r} is read-only: the server may be a replica.",
            hint="Name the primary in DATABASES; after a failover that may be another server.",
            id="steady_queue.E304",
        )
    if values.get("binlog_format", "").upper() == "STATEMENT":
        yield Error(
            f"binlog_format of database {alias!r} is STATEMENT; the queue's transactions are "
            "READ COMMITTED, which that format cannot log.",
            hint="Set binlog_format to ROW or MIXED.",
            id="steady_queue.E305",
        )
    if not values.get("character_set_connection", "utf8mb4").startswith("utf8mb4"):
        yield Warning(
            f"The connection to database {alias!r} cannot carry every character: it uses "
            f"{values['character_set_connection']}.",
            hint='Set OPTIONS["charset"] to "utf8mb4".',
            id="steady_queue.W306",
        )
    if server.max_packet < SMALL_PACKET:
        yield Warning(
            f"max_allowed_packet of database {alias!r} is {server.max_packet} bytes: larger "
            "arguments and results are refused.",
            hint=f"Set it to {SMALL_PACKET} or more.",
            id="steady_queue.W307",
        )


def _of_tables(connection: BaseDatabaseWrapper, server: Server) -> Iterator[CheckMessage]:
    for name, engine in _rows(connection, ASK_TABLES):
        yield Error(
            f"Table {name} of database {connection.alias!r} has the engine {engine}, which has "
            "no transactions.",
            hint=f"Run: ALTER TABLE {name} ENGINE = InnoDB",
            id="steady_queue.E308",
        )
    for name, column in _rows(connection, ASK_INSTANTS):
        yield Error(
            f"Column {column} of table {name} keeps no microseconds.",
            hint=f"Run: ALTER TABLE {name} MODIFY {column} datetime(6), NULL or NOT NULL as it is.",
            id="steady_queue.E309",
        )
    for name, column, charset in _rows(connection, ASK_TEXTS):
        yield Error(
            f"Column {column} of table {name} cannot hold every character: it is {charset}.",
            hint=f"Run: ALTER TABLE {name} MODIFY {column} longtext CHARACTER SET utf8mb4, NULL "
            "or NOT NULL as it is.",
            id="steady_queue.E310",
        )
    for name, column, collation in _rows(connection, ASK_NAMES, server.exact_collation):
        yield Error(
            f"Column {column} of table {name} takes different names for one: its collation is "
            f"{collation}, not {server.exact_collation}.",
            hint="Restore the column as the migration made it.",
            id="steady_queue.E311",
        )


def _of_privileges(connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    granted = {
        name: set(privileges.upper().split(","))
        for name, privileges in _rows(connection, ASK_PRIVILEGES)
    }
    deletable = _deletable(connection, sorted(granted)) if granted else set()
    gaps = []
    for name in OUR_TABLES if granted else ():
        given = granted.get(name, set())
        if not given and not _is_denied(connection, ASK_ROWS.format(name)):
            continue  # It is not there: `migrate` has yet to make it.
        if name in deletable:
            given.add("DELETE")
        if lacking := [privilege for privilege in NEEDED if privilege not in given]:
            gaps.append(f"{', '.join(lacking)} on {name}")
    if gaps:
        yield Error(
            f"The user of database {connection.alias!r} lacks privileges: {'; '.join(gaps)}.",
            hint=f"GRANT {', '.join(NEEDED)} on these tables to that user.",
            id="steady_queue.E312",
        )


def _deletable(connection: BaseDatabaseWrapper, names: list[str]) -> set[str]:
    """Return those of these tables whose rows may be deleted: one statement tells it of all, unless
    one of them is denied."""

    def are(some: list[str]) -> bool:
        statement = EXPLAIN_DELETE.format(", ".join(some), " JOIN ".join(some))
        return not _is_denied(connection, statement)

    return set(names) if are(names) else {name for name in names if are([name])}


def _is_denied(connection: BaseDatabaseWrapper, statement: str) -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            cursor.fetchall()
    except DatabaseError as error:
        return error_number(error) == DENIED  # A read-only server refuses EXPLAIN too.
    return False


def _variables(connection: BaseDatabaseWrapper) -> dict[str, str]:
    names = ", ".join(f"'{name}'" for name in VARIABLES)
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW VARIABLES WHERE Variable_name IN ({names})")
        return {str(name): str(value) for name, value in cursor.fetchall()}


def _rows(connection: BaseDatabaseWrapper, sql: str, *values: str) -> list[tuple[Any, ...]]:
    marks = ", ".join(["%s"] * len(OUR_TABLES))
    with connection.cursor() as cursor:
        cursor.execute(sql.format(marks=marks), [*OUR_TABLES, *values])
        return [tuple(map(str, row)) for row in cursor.fetchall()]
