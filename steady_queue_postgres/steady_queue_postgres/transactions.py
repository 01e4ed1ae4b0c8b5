"""Transactions of the queue's own writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable
from steady_queue_core.dialects.contention import until_free

from .errors import is_contention
from .prepared import READ_COMMITTED, TIMEOUTS, PreparedStatements, set_locally

T = TypeVar("T")

SET_TIMEOUTS = set_locally(TIMEOUTS)


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or begin one that is READ COMMITTED and, in a control thread,
    waits for locks only briefly."""
    joins = connection.in_atomic_block
    with _read_committed(connection, joins):
        prepared = None if joins else PreparedStatements.of(connection)
        if prepared is None:
            yield
            return
        with connection.cursor() as cursor:
            cursor.execute(SET_TIMEOUTS)
        prepared.shares_transaction = True
        try:
            yield
        finally:
            prepared.shares_transaction = False


def run_in_transaction(connection: BaseDatabaseWrapper, operation: Callable[[], T]) -> T:
    """Run ``operation`` in such a transaction, and repeat it after a deadlock, unless it is part of
    the caller's."""

    def run() -> T:
        with transaction(connection):
            return operation()

    return until_free(connection, run, lambda _, error: is_contention(error))


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the caller has begun a transaction."""
    return connection.in_atomic_block or not connection.get_autocommit()


@contextmanager
def planned_transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or begin one of prepared statements alone, each of which
    brings its settings along."""
    joins, prepared = connection.in_atomic_block, PreparedStatements.of(connection)
    with _read_committed(connection, joins):
        if joins or prepared is None:
            yield
            return
        prepared.owns_transaction = True
        try:
            yield
        finally:
            prepared.owns_transaction = False


@contextmanager
def _read_committed(connection: BaseDatabaseWrapper, joins: bool) -> Iterator[None]:
    begins = not joins and not is_in_transaction(connection)
    with portable.transaction(connection):
        # At a higher level, a statement that waited for a lock fails once the lock is free.
        if begins and not _reads_committed(connection):
            with connection.cursor() as cursor:
                cursor.execute(READ_COMMITTED)
        yield


def _reads_committed(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the transactions of the session are READ COMMITTED by themselves."""
    wrapper: Any = connection
    if wrapper.connection.isolation_level is not None:
        return False  # A level in the driver's own settings holds for every transaction.
    prepared = PreparedStatements.of(connection)
    isolation = default_isolation(connection) if prepared is None else prepared.isolation
    return isolation == "read committed"


def default_isolation(connection: BaseDatabaseWrapper) -> str:
    """Return the isolation level of transactions that do not name one, as the server, the database
    or the role has it. Asks the server once for each session."""
    wrapper: Any = connection
    known: tuple[Any, str] | None = getattr(wrapper, "steady_queue_isolation", None)
    if known is None or known[0] is not wrapper.connection:
        with connection.cursor() as cursor:
            # It reads no data: the level of a transaction may still be set.
            cursor.execute("SHOW default_transaction_isolation")
            [isolation] = cursor.fetchone()
        known = wrapper.steady_queue_isolation = (wrapper.connection, isolation)
    return known[1]
