"""Transactions of the queue's own, begun and ended by the packets that carry their statements.

They are READ COMMITTED, whatever the project's transactions are: under REPEATABLE READ, InnoDB also
locks the gaps between rows, and workers keep enqueuers waiting.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from .errors import is_deadlock
from .packets import Answer, Statement, drop, send

T = TypeVar("T")

READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
BEGIN = (Statement(READ_COMMITTED), Statement("START TRANSACTION"))
COMMIT = Statement("COMMIT")

#: How often a transaction that lost a deadlock is tried again.
RETRIES = 6
#: Longest pause before the first of these, in seconds; it doubles.
PAUSE = 0.005


class Conversation:
    """One transaction, as seen by the statements of an operation; or a part of the caller's."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection
        self.joined = is_in_transaction(connection)
        self._open = False

    def ask(self, statements: Sequence[Statement], *, last: bool = False) -> list[Answer]:
        """Execute ``statements``, first beginning the transaction; ``last``: then end it."""
        if self.joined:
            return send(self.connection, statements) if statements else []
        before = () if self._open else BEGIN
        after = (COMMIT,) if last else ()
        self._open = True
        answers = send(self.connection, [*before, *statements, *after])
        self._open = not last
        return answers[len(before) : len(before) + len(statements)]

    def end(self) -> None:
        """Commit, unless that is done, or not ours to do."""
        if self._open:
            self.ask([], last=True)

    def abort(self) -> None:
        """Roll back, if there may be anything to roll back; never fails."""
        if not self._open:
            return
        self._open = False
        if self.connection.connection is None:
            return  # Closed by what went wrong.
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("ROLLBACK")
        except Exception:
            drop(self.connection)


def converse(connection: BaseDatabaseWrapper, work: Callable[[Conversation], T]) -> T:
    """Do ``work`` in a transaction; again if it loses a deadlock and the transaction is ours."""
    for number in count():
        conversation = Conversation(connection)
        try:
            result = work(conversation)
            conversation.end()
            return result
        except BaseException as error:
            conversation.abort()
            if conversation.joined or number == RETRIES or not is_deadlock(error):
                raise
        # Without chance in it, the same two would meet again.
        time.sleep(random.uniform(0, PAUSE * 2**number))
    raise AssertionError("unreachable")


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or be one of our own for the statements of the ORM."""
    if is_in_transaction(connection):
        yield
        return
    wrapper: Any = connection
    if wrapper.isolation_level != "read committed":
        with connection.cursor() as cursor:
            cursor.execute(READ_COMMITTED)  # Of the next transaction only.
    with atomic(using=connection.alias, savepoint=False):
        yield


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Whether a transaction is the caller's to end."""
    return connection.in_atomic_block or not connection.get_autocommit()
