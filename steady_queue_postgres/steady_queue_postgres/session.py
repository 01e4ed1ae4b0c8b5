"""What a queue process sets on its connections."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported

from .plans import Plans
from .pooler import is_pooled

#: RETURNING from data-modifying expressions and SKIP LOCKED are older; Django needs this one.
MINIMUM_VERSION = 14

#: Milliseconds for which a thread that tries again by itself waits for locks.
LOCK_TIMEOUT = 2_000
#: Milliseconds that such a thread may be silent in a transaction, before the server ends it: its
#: process may be cut off, and whoever takes over needs the locks.
IDLE_TIMEOUT = 8_000

# A plan is made once, perhaps while the tables are empty, and lasts: so only what is right for full
# ones is allowed. Rows are found by an index, in its order; those found by their keys are put
# together by hashing, for nested loops over a few hundred of them take longer than all the rest.
SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_nestloop": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "lock_timeout": f"{LOCK_TIMEOUT}ms",
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT}ms",
    "default_transaction_isolation": "read committed",
}
SET = "SELECT " + ", ".join(
    f"set_config('{name}', '{value}', false)" for name, value in SETTINGS.items()
)

ISOLATION = "SHOW default_transaction_isolation"


def prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Set up the session of a process's main thread; leave those of tasks to the project."""
    connection.ensure_connection()
    require_version(connection)
    prepare_nothing_behind_pooler(connection)
    if not impatient:
        return []
    if is_shared(connection):
        return ["its sessions are left as they are: a connection pool gives them to others"]
    said = []
    wrapper: Any = connection
    with connection.cursor() as cursor:
        cursor.execute(ISOLATION)
        isolation = cursor.fetchone()[0]
        cursor.execute(SET)
    server_binds = connection.settings_dict["OPTIONS"].get("server_side_binding")
    if not server_binds and Plans.of(connection) is None:
        Plans.begin(connection)
    if isolation != "read committed" or wrapper.connection.isolation_level is not None:
        wrapper.connection.isolation_level = None
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
