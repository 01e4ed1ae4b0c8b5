"""System checks of a PostgreSQL database that holds a queue."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported, tables

from . import host_checks, row_security
from .pooler import is_declared, is_pooled
from .session import require_version

STATE = """
SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean,
       current_setting('transaction_isolation')"""

NEEDED = ["SELECT", "INSERT", "UPDATE", "DELETE"]
OUR_TABLES = sorted(name for constant, name in vars(tables).items() if constant.isupper())
LACKING = """
SELECT name, string_agg(privilege, ', ')
FROM unnest(%s::text[]) AS name, unnest(%s::text[]) AS privilege
WHERE to_regclass(name) IS NOT NULL AND NOT has_table_privilege(to_regclass(name), privilege)
GROUP BY name ORDER BY name"""


def run(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    """Report servers that are too old or read-only, missing privileges, hidden rows, other
    isolation levels, undeclared poolers, and hosts that a connection may wait for in vain."""
    connection.ensure_connection()
    try:
        require_version(connection)
    except DialectUnsupported as error:
        return [Error(str(error), id="steady_queue.E201")]
    with connection.cursor() as cursor:
        cursor.execute(STATE)
        is_standby, is_read_only, isolation = cursor.fetchone()
        cursor.execute(LACKING, [OUR_TABLES, NEEDED])
        lacking = cursor.fetchall()
    wrapper: Any = connection
    chosen = wrapper.connection.isolation_level
    if chosen is not None:
        isolation = chosen.name.replace("_", " ").lower()
    found: list[CheckMessage] = []
    name = connection.alias
    if is_standby:
        found.append(
            Error(
                f"Database {name!r} is a standby, which is read-only: no job can be enqueued or "
                "claimed.",
                hint="Name the primary in DATABASES; or name all servers as HOST, separated by "
                "commas, with OPTIONS = {'target_session_attrs': 'read-write'}.",
                id="steady_queue.E202",
            )
        )
    elif is_read_only:
        found.append(
            Error(
                f"Database {name!r} is read-only: no job can be enqueued or claimed.",
                hint="Find out where default_transaction_read_only is set: for the server, the "
                "database, the user, or in OPTIONS.",
                id="steady_queue.E202",
            )
        )
    if lacking:
        gaps = "; ".join(f"{privileges} on {table}" for table, privileges in lacking)
        found.append(
            Error(
                f"The user of database {name!r} lacks privileges: {gaps}.",
                hint=f"GRANT {', '.join(NEEDED)} on these tables to that user.",
                id="steady_queue.E203",
            )
        )
    if isolation != "read committed":
        found.append(
            Warning(
                f"Transactions on database {name!r} are {isolation.upper()} by default.",
                hint="Enqueueing works, but a transaction that meets another's change has to be "
                "repeated. Leave isolation_level in OPTIONS, and default_transaction_isolation, at "
                "READ COMMITTED for the queue's database.",
                id="steady_queue.W201",
            )
        )
    if is_pooled(connection) and not is_declared(connection):
        found.append(
            Warning(
                f"Database {name!r} is behind a connection pooler: workers poll, because "
                "notifications do not pass through it.",
                hint="Set DISABLE_SERVER_SIDE_CURSORS = True beside it, as Django asks for, or "
                "give workers a direct connection.",
                id="steady_queue.W202",
            )
        )
    return [*found, *row_security.messages(connection), *host_checks.run(connection)]
