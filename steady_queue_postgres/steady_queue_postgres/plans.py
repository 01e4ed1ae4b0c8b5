"""Statements that the server plans once for a session: planning takes longer than running them.

By SQL's own PREPARE, since Django's cursors write values into the text. In sessions alone that are
a queue process's own: others may be handed to somebody else in between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

PLACEHOLDER = re.compile(r"%\((\w+)\)s")

#: Milliseconds for which a thread that tries again by itself waits for locks.
LOCK_TIMEOUT = 2_000
#: Milliseconds that such a thread may be silent in a transaction before the server ends it: its
#: process may be cut off, and whoever takes over needs the locks.
IDLE_TIMEOUT = 8_000

#: For all transactions of such a thread.
PATIENCE = {
    "lock_timeout": f"{LOCK_TIMEOUT}ms",
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT}ms",
}
# A plan is made once, perhaps while the tables are empty, and lasts: so only what is right for full
# ones is allowed. Rows are found by an index, in its order; those found by their keys are put
# together by hashing, for nested loops over a few hundred of them take longer than all the rest.
SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_nestloop": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    **PATIENCE,
}


def setting(values: Mapping[str, str]) -> str:
    """Return a statement that makes settings for the present transaction."""
    return "SELECT " + ", ".join(
        f"set_config('{name}', '{value}', true)" for name, value in values.items()
    )


PREPARE_SETTINGS = f"PREPARE steady_queue_settings AS {setting(SETTINGS)}"
# Sent along with each statement, and over with its transaction: whatever else runs in the session,
# such as a project's hooks, has it as the project does.
SET = "EXECUTE steady_queue_settings; "
READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


class Plans:
    """The statements prepared in one session."""

    def __init__(self, session: Any, isolation: str) -> None:
        self._session = session
        self._prepared: dict[str, tuple[str, list[str]]] = {}
        #: The isolation level of transactions that do not name one.
        self.isolation = isolation
        #: Whether the present transaction consists of such statements alone.
        self.owns_transaction = False

    @classmethod
    def begin(cls, connection: BaseDatabaseWrapper, isolation: str) -> None:
        """From now on, prepare statements in the present session of ``connection``."""
        wrapper: Any = connection
        wrapper.steady_queue_plans = cls(wrapper.connection, isolation)

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> Plans | None:
        """Return the plans of the present session; ``None`` where it keeps none."""
        wrapper: Any = connection
        plans: Plans | None = getattr(wrapper, "steady_queue_plans", None)
        if plans is None or wrapper.connection is None or plans._session is not wrapper.connection:
            return None
        return plans

    def fetch(
        self, connection: BaseDatabaseWrapper, statement: str, values: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """Run a statement under the settings, after preparing it the first time."""
        with _cursor(connection) as cursor:
            if not self._prepared:
                cursor.execute(PREPARE_SETTINGS)
            if statement not in self._prepared:
                self._prepare(cursor, statement)
            run, names = self._prepared[statement]
            if not (connection.in_atomic_block or self.isolation == "read committed"):
                run = f"{READ_COMMITTED}; {run}"
            cursor.execute(run, [values[name] for name in names])
            while cursor.nextset():  # The last result is the statement's own.
                pass
            return list(cursor.fetchall())

    def _prepare(self, cursor: Any, statement: str) -> None:
        names = list(dict.fromkeys(PLACEHOLDER.findall(statement)))
        places = {name: f"${place}" for place, name in enumerate(names, 1)}
        name = f"steady_queue_{len(self._prepared)}"
        text = PLACEHOLDER.sub(lambda found: places[found[1]], statement)
        cursor.execute(f"PREPARE {name} AS {text}")
        arguments = f"({', '.join(['%s'] * len(names))})" if names else ""
        self._prepared[statement] = f"{SET}EXECUTE {name} {arguments}", names


def _cursor(connection: BaseDatabaseWrapper) -> Any:
    """Return a cursor that writes values into the text, whatever the project's own do: the server
    takes several statements at once in that form alone."""
    if not connection.settings_dict["OPTIONS"].get("server_side_binding"):
        return connection.cursor()
    from django.db.backends.postgresql import base

    wrapper: Any = connection
    client_side: Any = base.Cursor
    wrapper.ensure_connection()
    with wrapper.wrap_database_errors:
        return wrapper._prepare_cursor(client_side(wrapper.connection))
