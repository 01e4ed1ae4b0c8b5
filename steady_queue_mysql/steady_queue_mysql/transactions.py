"""Transactions of the queue, which begin and end in the batches that carry their statements.

They are READ COMMITTED, whatever the project's transactions are: under REPEATABLE READ InnoDB also
locks the gaps between rows, so that workers would keep enqueues waiting.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from steady_queue_core.dialects import portable

from .batches import Result, Statement, discard, execute_all
from .errors import is_deadlock
from .server import server_of

T = TypeVar("T")

#: For the next transaction only.
READ_COMMITTED = Statement("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
BEGIN = Statement("START TRANSACTION")
COMMIT = Statement("COMMIT")

#: How often a transaction is retried after a deadlock.
RETRIES = 6
#: The longest pause before the first retry, in seconds; it doubles with each.
MAX_PAUSE = 0.005


class Transaction:
    """The transaction of an operation: its own, or the caller's, which it joins.

    ``reads`` is false for an operation that reads nothing: its isolation level does not matter.
    """

    def __init__(self, connection: BaseDatabaseWrapper, *, reads: bool = True) -> None:
        self.connection = connection
        self._beginning = (READ_COMMITTED, BEGIN) if reads else (BEGIN,)
        self.joined = is_in_transaction(connection)
        self._open = False

    @property
    def sees_past(self) -> bool:
        """Whether only locking reads see what others have committed since it began."""
        return self.joined and sees_past(self.connection)

    def execute(self, statements: Sequence[Statement], *, last: bool = False) -> list[Result]:
        """Execute ``statements``, beginning the transaction if need be; ``last`` commits it."""
        if self.joined:
            return execute_all(self.connection, statements) if statements else []
        before = () if self._open else self._beginning
        after = (COMMIT,) if last else ()
        self._open = True
        results = execute_all(self.connection, [*before, *statements, *after])
        self._open = not last
        return results[len(before) : len(before) + len(statements)]

    def commit(self) -> None:
        """Commit, unless that is done already or left to the caller."""
        if self._open:
            self.execute([], last=True)

    def doom(self) -> None:
        """Let Django refuse to commit the caller's transaction, should the caller go on."""
        if self.joined and self.connection.in_atomic_block:
            self.connection.needs_rollback = True

    def rollback(self) -> None:
        """Roll back, if the transaction is open; never raises."""
        if not self._open:
            return
        self._open = False
        if self.connection.connection is None:
            return  # Closed by the error.
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("ROLLBACK")
        except Exception:
            discard(self.connection)


def run_in_transaction(
    connection: BaseDatabaseWrapper, work: Callable[[Transaction], T], *, reads: bool = True
) -> T:
    """Run ``work`` in a transaction. After a deadlock retry it, unless it joined the caller's."""
    for number in count():
        own = Transaction(connection, reads=reads)
        try:
            result = work(own)
            own.commit()
            return result
        except BaseException as error:
            own.rollback()
            if isinstance(error, Error):
                # A deadlock has undone all of the caller's transaction, and another error only a
                # part of what was asked for.
                own.doom()
            if own.joined or number == RETRIES or not is_deadlock(error):
                raise
        # Random, or the same two transactions would meet again.
        time.sleep(random.uniform(0, MAX_PAUSE * 2**number))
    raise AssertionError("unreachable")


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or begin one for statements of the ORM."""
    if connection.in_atomic_block:
        with portable.transaction(connection):
            yield
        return
    if is_in_transaction(connection):
        yield
        return
    wrapper: Any = connection
    if wrapper.isolation_level != "read committed":
        with connection.cursor() as cursor:
            cursor.execute(READ_COMMITTED.sql)
    wrapper.steady_queue_reads_committed = True
    try:
        with atomic(using=connection.alias, savepoint=False):
            yield
    finally:
        wrapper.steady_queue_reads_committed = False


def reads_committed(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the current transaction, the caller's or one of the queue's own, is known to
    be READ COMMITTED."""
    wrapper: Any = connection
    own = getattr(wrapper, "steady_queue_reads_committed", False)
    return bool(own or wrapper.isolation_level == "read committed")


def sees_past(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the current transaction may see the past in all but locking reads."""
    return not reads_committed(connection)


def is_serializable(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the caller's transaction locks whatever it reads."""
    wrapper: Any = connection
    return bool(wrapper.isolation_level == "serializable")


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the caller has begun a transaction."""
    return connection.in_atomic_block or not connection.get_autocommit()


def lock_rows(connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool) -> QuerySet[Any]:
    server_of(connection)  # Corrects what Django believes about SKIP LOCKED.
    return portable.lock_rows(connection, rows, wait)
