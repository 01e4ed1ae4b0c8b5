"""The transaction of the queue's own writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

from .plans import PATIENCE, READ_COMMITTED, Plans, setting

SET_PATIENCE = setting(PATIENCE)


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or be one that sees what others have committed; in a queue
    process, one that does not wait for locks for long."""
    joins = connection.in_atomic_block
    with _committed_by_others(connection, joins):
        if not joins and Plans.of(connection) is not None:
            with connection.cursor() as cursor:
                cursor.execute(SET_PATIENCE)
        yield


@contextmanager
def planned_transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Do so for statements that bring their own settings, and their plans, where there are any."""
    joins, plans = connection.in_atomic_block, Plans.of(connection)
    with _committed_by_others(connection, joins):
        if joins or plans is None:
            yield
            return
        plans.owns_transaction = True
        try:
            yield
        finally:
            plans.owns_transaction = False


@contextmanager
def _committed_by_others(connection: BaseDatabaseWrapper, joins: bool) -> Iterator[None]:
    with portable.transaction(connection):
        plans = Plans.of(connection)
        wrapper: Any = connection
        others = plans is not None and plans.isolation != "read committed"
        # In others, who waits for a lock fails when it is free. The driver sets them itself.
        if not joins and (others or wrapper.connection.isolation_level is not None):
            with connection.cursor() as cursor:
                cursor.execute(READ_COMMITTED)
        yield
