"""What a queue process does to its connections."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported

from .plans import SETTINGS, Plans
from .pooler import is_pooled

#: RETURNING from data-modifying expressions and SKIP LOCKED are older; Django needs this one.
MINIMUM_VERSION = 14

ISOLATION = "SHOW default_transaction_isolation"


def prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Have the session of a process's main thread keep plans; leave those of tasks as they are."""
    connection.ensure_connection()
    require_version(connection)
    prepare_nothing_behind_pooler(connection)
    if not impatient:
        return []
    wrapper: Any = connection
    version = wrapper.connection.info.server_version
    said = [f"the server is PostgreSQL {version // 10_000}.{version % 10_000}"]
    if is_shared(connection):
        return [*said, "its sessions are left as they are: a connection pool gives them to others"]
    with connection.cursor() as cursor:
        cursor.execute(ISOLATION)
        isolation = cursor.fetchone()[0]
    if Plans.of(connection) is None:
        Plans.begin(connection, isolation)
    settings = ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
    said.append(f"the queue's own statements have {settings}")
    if isolation != "read committed" or wrapper.connection.isolation_level is not None:
        said.append("the queue's own transactions are READ COMMITTED")
    return said


def is_shared(connection: BaseDatabaseWrapper) -> bool:
    """Whether the session will be somebody else's: Django's pool or a pooler keeps it."""
    return bool(connection.settings_dict["OPTIONS"].get("pool")) or is_pooled(connection)


def prepare_nothing_behind_pooler(connection: BaseDatabaseWrapper) -> None:
    """Turn off the driver's prepared statements where the next statement meets another server."""
    wrapper: Any = connection
    session = wrapper.connection
    if getattr(session, "prepare_threshold", None) is not None and is_pooled(connection):
        session.prepare_threshold = None


def require_version(connection: BaseDatabaseWrapper) -> None:
    """Raise ``DialectUnsupported`` if the server is too old. The driver knows: it runs no query."""
    wrapper: Any = connection
    number = wrapper.connection.info.server_version
    if number < MINIMUM_VERSION * 10_000:
        raise DialectUnsupported(
            f"Database {connection.alias!r} runs PostgreSQL {number // 10_000}."
            f"{number % 10_000}; Steady Queue needs PostgreSQL {MINIMUM_VERSION} or newer. "
            "Upgrade the server, or give the queue a database of its own on a newer one."
        )
