"""The transaction of the queue's own writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or be one that sees what others have committed."""
    joins = connection.in_atomic_block
    with portable.transaction(connection):
        wrapper: Any = connection
        # In others, who waits for a lock fails when it is free. The driver sets them itself.
        if not joins and wrapper.connection.isolation_level is not None:
            with connection.cursor() as cursor:
                cursor.execute(READ_COMMITTED)
        yield
