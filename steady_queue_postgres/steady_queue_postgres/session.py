"""The connections of queue processes, and the project's own connections to a queue's database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported

from .pool_forks import replace_pools_in_children
from .pooler import is_pooled
from .prepared import SETTINGS, PreparedStatements
from .transactions import default_isolation

#: RETURNING from data-modifying expressions and SKIP LOCKED are older; Django needs this one.
MINIMUM_VERSION = 14


def prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Set up the connection of a queue process: a control thread's session keeps prepared
    statements, a task's session is left as it is. Return a description of the changes."""
    connection.ensure_connection()
    require_version(connection)
    prepare_nothing_behind_pooler(connection)
    if not impatient:
        return []
    wrapper: Any = connection
    version = wrapper.connection.info.server_version
    changes = [f"the server is PostgreSQL {version // 10_000}.{version % 10_000}"]
    if is_shared(connection):
        changes.append("its sessions are left as they are: a connection pool gives them to others")
        return changes
    if wrapper.connection.info.encoding != "utf-8":
        with connection.cursor() as cursor:
            cursor.execute("SET client_encoding = 'UTF8'")
        changes.append("the queue's own connections carry every character")
    isolation = default_isolation(connection)
    if PreparedStatements.of(connection) is None:
        PreparedStatements.begin(connection, isolation)
    settings = ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
    changes.append(f"the queue's own statements have {settings}")
    if isolation != "read committed" or wrapper.connection.isolation_level is not None:
        changes.append("the queue's own transactions are READ COMMITTED")
    return changes


def share(connection: BaseDatabaseWrapper) -> None:
    """Set up a connection of the project's own."""
    replace_pools_in_children(connection)
    prepare_nothing_behind_pooler(connection)


def is_shared(connection: BaseDatabaseWrapper) -> bool:
    """Return whether Django's pool or a pooler may hand the session to another client."""
    return bool(connection.settings_dict["OPTIONS"].get("pool")) or is_pooled(connection)


def prepare_nothing_behind_pooler(connection: BaseDatabaseWrapper) -> None:
    """Turn off the driver's prepared statements if the next statement may go to another server
    session."""
    wrapper: Any = connection
    session = wrapper.connection
    if getattr(session, "prepare_threshold", None) is not None and is_pooled(connection):
        session.prepare_threshold = None


def require_version(connection: BaseDatabaseWrapper) -> None:
    """Raise ``DialectUnsupported`` if the server is too old, or another product. Runs no query: the
    driver knows."""
    wrapper: Any = connection
    info = wrapper.connection.info
    if product := imitation(info.parameter_status):
        raise DialectUnsupported(
            f"Database {connection.alias!r} is {product}, which speaks the protocol of PostgreSQL "
            "and locks rows and notifies otherwise. Keep the queue in a database of PostgreSQL, "
            "MySQL, MariaDB or SQLite."
        )
    number = info.server_version
    if number < MINIMUM_VERSION * 10_000:
        raise DialectUnsupported(
            f"Database {connection.alias!r} runs PostgreSQL {number // 10_000}."
            f"{number % 10_000}; Steady Queue needs PostgreSQL {MINIMUM_VERSION} or newer. "
            "Upgrade the server, or give the queue a database of its own on a newer one."
        )


def imitation(parameter: Callable[[str], str | None]) -> str:
    """Return the name of another product that announces itself as PostgreSQL, by what it has said
    of itself at the start of the session; empty if it is none."""
    if parameter("crdb_version"):
        return "CockroachDB"
    return "YugabyteDB" if "-YB-" in (parameter("server_version") or "") else ""
