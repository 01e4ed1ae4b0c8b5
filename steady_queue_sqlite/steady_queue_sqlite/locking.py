"""One writer at a time, in fair order.

SQLite's own lock makes waiters sleep ever longer and serves whoever happens to wake: under load
one process gets everything and another waits for seconds. The queue's own writers therefore pass
through a lock file first, where they look often and for a bounded time, and begin their
transactions in IMMEDIATE mode, because a transaction that becomes a writer halfway fails at once
when somebody else has written meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import Atomic

from steady_queue_core.dialects import tables

from .lock_file import lock_file

#: How long to try to begin a transaction while others hold the database, in seconds.
BEGIN_PATIENCE = 30.0
#: The same for a thread that tries again by itself.
IMPATIENCE = 0.5

BECOME_WRITER = f"DELETE FROM {tables.PAUSES} WHERE 0"


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or be an immediate one of our own."""
    if connection.in_atomic_block:
        with connection.cursor() as cursor:
            # A caller's deferred transaction becomes the writer now, before our first read:
            # what we read could else be out of date when we write.
            cursor.execute(BECOME_WRITER)
        yield
        return
    atomic = Atomic(connection.alias, savepoint=False, durable=False)
    with lock_file(connection):
        _begin(connection, atomic)
        try:
            yield
        except BaseException as error:
            atomic.__exit__(type(error), error, error.__traceback__)
            raise
        atomic.__exit__(None, None, None)


def set_patience(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Wait so long for other writers, in single statements and at the begin of transactions."""
    wrapper: Any = connection
    wrapper.steady_queue_patience = seconds
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


def _begin(connection: BaseDatabaseWrapper, atomic: Atomic) -> None:
    connection.ensure_connection()  # Only then is the project's own mode known.
    wrapper: Any = connection
    patience = getattr(wrapper, "steady_queue_patience", BEGIN_PATIENCE)
    deadline = time.monotonic() + patience
    mode = wrapper.transaction_mode
    wrapper.transaction_mode = "IMMEDIATE"
    try:
        while True:
            try:
                atomic.__enter__()
                return
            except OperationalError as error:
                if not is_contention(error) or time.monotonic() > deadline:
                    raise
    finally:
        wrapper.transaction_mode = mode


def is_contention(error: BaseException) -> bool:
    """Recognise SQLITE_BUSY and SQLITE_LOCKED, whatever the text around them."""
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    if code is None:
        return "database is locked" in str(error) or "table is locked" in str(error)
    return (code & 0xFF) in (5, 6)
