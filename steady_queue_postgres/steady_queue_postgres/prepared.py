"""Runs the queue's statements: prepared once for a session where that is possible.

Planning them takes longer than running them. They are prepared by SQL's own PREPARE, since Django's
cursors write values into the text, and only in sessions that belong to a queue process: another
session may be handed to another client in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import mark_for_rollback_on_error

from .cursors import client_side_cursor, quick_cursor

PLACEHOLDER = re.compile(r"%\((\w+)\)s")

#: Milliseconds that a control thread, which tries again by itself, waits for locks.
LOCK_TIMEOUT = 2_000
#: Milliseconds that such a thread may be silent in a transaction before the server ends it: its
#: process may be cut off, and the process that takes over needs the locks.
IDLE_TIMEOUT = 8_000

#: For all transactions of control threads.
TIMEOUTS = {
    "lock_timeout": f"{LOCK_TIMEOUT}ms",
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT}ms",
}
# A plan is made once, perhaps while the tables are empty, and lasts: so only what is right for full
# tables is allowed. Rows are found by an index, in its order; rows found by their keys are joined
# by hashing, for nested loops over a few hundred of them take longer than all the rest.
PLANS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_nestloop": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
SETTINGS = {**PLANS, **TIMEOUTS}


def set_locally(values: Mapping[str, str]) -> str:
    """Return a statement that changes settings until the end of the transaction."""
    return "SELECT " + ", ".join(
        f"set_config('{name}', '{value}', true)" for name, value in values.items()
    )


PREPARE_SETTINGS = f"PREPARE steady_queue_settings AS {set_locally(SETTINGS)}"
# Sent along with each statement, and undone with its transaction: whatever else runs in the
# session, such as a project's hooks, keeps the project's settings.
SET = "EXECUTE steady_queue_settings; "
READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


Rows = TypeVar("Rows")


def fetch(
    connection: BaseDatabaseWrapper, statement: str, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Run one statement in the caller's transaction or in one of its own; return its rows."""
    return _execute(connection, statement, values, _rows)


def fetch_named(
    connection: BaseDatabaseWrapper, statement: str, values: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Like ``fetch``, with the rows' values by the names of their columns."""
    return _execute(connection, statement, values, _named_rows)


def _execute(
    connection: BaseDatabaseWrapper,
    statement: str,
    values: Mapping[str, Any],
    read: Callable[[Any], Rows],
) -> Rows:
    prepared = PreparedStatements.of(connection)
    if not connection.in_atomic_block:
        return _run(connection, prepared, statement, values, read)
    # Without the mark, PostgreSQL would silently turn the commit of a caller that handles an error
    # into a rollback.
    with mark_for_rollback_on_error(connection.alias):
        own = prepared if prepared is not None and prepared.may_be_used else None
        return _run(connection, own, statement, values, read)


def _run(
    connection: BaseDatabaseWrapper,
    prepared: PreparedStatements | None,
    statement: str,
    values: Mapping[str, Any],
    read: Callable[[Any], Rows],
) -> Rows:
    if prepared is not None:
        return prepared.execute(connection, statement, values, read)
    with quick_cursor(connection) as cursor:
        cursor.execute(statement, values)
        return read(cursor)


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    return list(cursor.fetchall())


def _named_rows(cursor: Any) -> list[dict[str, Any]]:
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


class PreparedStatements:
    """The statements prepared in one session."""

    def __init__(self, session: Any, isolation: str) -> None:
        self._session = session
        self._prepared: dict[str, tuple[str, list[str]]] = {}
        #: The isolation level of transactions that do not name one.
        self.isolation = isolation
        #: Whether the current transaction consists of prepared statements alone.
        self.owns_transaction = False
        #: Whether it is one of the queue's own, with other statements as well.
        self.shares_transaction = False
        #: What follows a prepared statement there; empty until it is needed.
        self._restore = ""

    @classmethod
    def begin(cls, connection: BaseDatabaseWrapper, isolation: str) -> None:
        """Prepare statements in the current session of ``connection`` from now on."""
        wrapper: Any = connection
        wrapper.steady_queue_prepared = cls(wrapper.connection, isolation)

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> PreparedStatements | None:
        """Return those of the current session, or ``None`` if it keeps none."""
        wrapper: Any = connection
        found: PreparedStatements | None = getattr(wrapper, "steady_queue_prepared", None)
        if found is None or wrapper.connection is None or found._session is not wrapper.connection:
            return None
        return found

    @property
    def may_be_used(self) -> bool:
        """Whether the current transaction is one of the queue's own."""
        return self.owns_transaction or self.shares_transaction

    def execute(
        self,
        connection: BaseDatabaseWrapper,
        statement: str,
        values: Mapping[str, Any],
        read: Callable[[Any], Rows],
    ) -> Rows:
        """Run a statement under the settings, after preparing it the first time; ``read`` takes its
        rows from the cursor."""
        restores = connection.in_atomic_block and not self.owns_transaction
        with client_side_cursor(connection) as cursor:
            if not self._prepared:
                cursor.execute(PREPARE_SETTINGS)
            if statement not in self._prepared:
                self._prepare(cursor, statement)
            execute, names = self._prepared[statement]
            if not (connection.in_atomic_block or self.isolation == "read committed"):
                execute = f"{READ_COMMITTED}; {execute}"
            if restores:
                execute += self._restoring(cursor)
            cursor.execute(execute, [values[name] for name in names])
            if restores:
                cursor.nextset()  # The first result is that of the settings, the last as well.
                return read(cursor)
            while cursor.nextset():  # The last result is the statement's own.
                pass
            return read(cursor)

    def _restoring(self, cursor: Any) -> str:
        """Return what gives the other statements of the transaction the session's own plans."""
        if not self._restore:
            cursor.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in PLANS))
            found = dict(zip(PLANS, cursor.fetchone(), strict=True))
            cursor.execute(f"PREPARE steady_queue_restore AS {set_locally(found)}")
            self._restore = "; EXECUTE steady_queue_restore"
        return self._restore

    def _prepare(self, cursor: Any, statement: str) -> None:
        names = list(dict.fromkeys(PLACEHOLDER.findall(statement)))
        parameters = {name: f"${number}" for number, name in enumerate(names, 1)}
        name = f"steady_queue_{len(self._prepared)}"
        text = PLACEHOLDER.sub(lambda found: parameters[found[1]], statement)
        cursor.execute(f"PREPARE {name} AS {text}")
        arguments = f"({', '.join(['%s'] * len(names))})" if names else ""
        self._prepared[statement] = f"{SET}EXECUTE {name} {arguments}", names
