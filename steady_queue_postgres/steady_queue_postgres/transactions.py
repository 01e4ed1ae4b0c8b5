"""Transactions of the queue's own writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

from .prepared import READ_COMMITTED, TIMEOUTS, PreparedStatements, set_locally

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
    with portable.transaction(connection):
        prepared = PreparedStatements.of(connection)
        wrapper: Any = connection
        differs = prepared is not None and prepared.isolation != "read committed"
        # At a higher level, a statement that waited for a lock fails once the lock is free. A level
        # in the driver's own settings holds for every transaction.
        if not joins and (differs or wrapper.connection.isolation_level is not None):
            with connection.cursor() as cursor:
                cursor.execute(READ_COMMITTED)
        yield
