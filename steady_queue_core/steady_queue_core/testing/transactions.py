"""Runs a task inside a test's transaction as if there were none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from ..dialects import Dialect
from ..processes.worker.task_transaction import OpenTransaction, only_writes_to


@contextmanager
def in_a_transaction(using: str) -> Iterator[None]:
    """Run a task that is delivered transactionally: what it writes to the database ``using`` is
    kept or rolled back as a whole, and that is not for the task to decide."""
    with only_writes_to(using), atomic(using=using), OpenTransaction(using):
        yield


@contextmanager
def as_a_worker_would() -> Iterator[None]:
    """Keep the transactions that the thread is in usable, whatever the task does, and call what
    it registers for after the commit when it has ended.

    What the task has written stays, unless an error of the database has broken the transaction:
    then it is rolled back to where the task began.
    """
    opened = [
        _Block(connection)
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block
    ]
    try:
        yield
    except BaseException:
        for block in opened:
            block.end()
        raise
    broken = [error for block in opened if (error := block.end()) is not None]
    if broken:
        raise broken[0]


class _Block:
    """A transaction, from the beginning of a task on."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection: Any = connection
        self.savepoint = self.connection.savepoint()
        self._hooks = len(self.connection.run_on_commit)

    def end(self) -> DatabaseError | None:
        """Go on after the task; return what keeps its writes from being kept, if anything does."""
        error = self._broken()
        if error is None:
            self.connection.savepoint_commit(self.savepoint)
            self._commit()
        else:
            del self.connection.run_on_commit[self._hooks :]
            self.connection.needs_rollback = False
            self.connection.savepoint_rollback(self.savepoint)
        return error

    def _broken(self) -> DatabaseError | None:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                cursor.fetchall()
        except DatabaseError as error:
            return error
        return None

    def _commit(self) -> None:
        while len(self.connection.run_on_commit) > self._hooks:
            _, function, _ = self.connection.run_on_commit.pop(self._hooks)
            if not _rings(function):
                function()


def _rings(function: Any) -> bool:
    """Whether this would wake workers, which could not see the jobs of the transaction."""
    return isinstance(function, partial) and getattr(function.func, "__func__", 0) is Dialect.ring
