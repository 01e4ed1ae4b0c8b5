"""Transactions of the queue: one writer at a time, in fair order.

SQLite's own lock makes waiters sleep ever longer and serves the one that happens to wake up: under
load one process gets everything while another waits for seconds. The queue's writers therefore take
a lock file first, which they poll often and for a bounded time. Their transactions begin in
IMMEDIATE mode, because one that becomes a writer halfway fails at once if another connection has
written in the meantime.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import Error, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import Atomic

from steady_queue_core.dialects import tables

from .errors import is_contention
from .lock_file import lock_file

#: Seconds to keep trying to begin a transaction while other writers hold the database.
BEGIN_TIMEOUT = 30.0
#: The same for a control thread, which tries again by itself.
SHORT_TIMEOUT = 0.5

BECOME_WRITER = f"DELETE FROM {tables.PAUSES} WHERE 0"


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or begin an immediate one."""
    if connection.in_atomic_block:
        with connection.cursor() as cursor:
            # A caller's deferred transaction becomes the writer now, before the first read:
            # otherwise what is read could be out of date by the time of the write.
            cursor.execute(BECOME_WRITER)
        with _doomed_by_errors(connection):
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


@contextmanager
def _doomed_by_errors(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let Django refuse to commit the caller's transaction after an error: it may have carried out
    a part of what was asked for; and SQLite ends a transaction by itself when the disk is full."""
    try:
        yield
    except Error:
        connection.needs_rollback = True
        raise


def lock_rows(connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool) -> QuerySet[Any]:
    """Return ``rows`` as they are: an immediate transaction holds the whole database."""
    return rows


def set_lock_timeout(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Set how long single statements and the beginning of transactions wait for other writers."""
    wrapper: Any = connection
    wrapper.steady_queue_lock_timeout = seconds
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


def _begin(connection: BaseDatabaseWrapper, atomic: Atomic) -> None:
    connection.ensure_connection()  # Before that, the project's own mode is not known.
    wrapper: Any = connection
    mode = wrapper.transaction_mode
    wrapper.transaction_mode = "IMMEDIATE"
    try:
        try_until_free(connection, atomic.__enter__)
    finally:
        wrapper.transaction_mode = mode


def try_until_free(connection: BaseDatabaseWrapper, begin: Callable[[], object]) -> None:
    """Call ``begin``, again and again while other writers hold the database, for a bounded time."""
    timeout = getattr(connection, "steady_queue_lock_timeout", BEGIN_TIMEOUT)
    deadline = time.monotonic() + timeout
    while True:
        try:
            begin()
            return
        except OperationalError as error:
            if not is_contention(connection, error) or time.monotonic() > deadline:
                raise
