"""The transactions in which batches and their members are stored."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from ..dialects.contention import until_free
from ..dialects.database import Database

T = TypeVar("T")


def transaction_on(database: Database) -> AbstractContextManager[Any]:
    """Return a transaction; in one of the caller a savepoint, so that the caller's can go on."""
    if database.connection.in_atomic_block:
        return transaction.atomic(using=database.alias)
    return database.transaction()


def in_transaction_on(
    database: Database,
    operation: Callable[[], T],
    *,
    repeats: bool = True,
    when_committed: Callable[[], object] = lambda: None,
) -> T:
    """Run ``operation``, in which code of the project may run, in such a transaction, and repeat it
    after a deadlock, unless it is part of the caller's or does more than that can undo."""
    connection, joins = database.connection, database.connection.in_atomic_block
    committed: list[bool] = []

    def note_commit() -> None:
        committed.append(True)
        when_committed()

    def run() -> T:
        with transaction_on(database):
            if connection.in_atomic_block and not joins:
                transaction.on_commit(note_commit, using=database.alias)
            return operation()

    def is_worth_it(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
        # What the project does once it is committed may meet a deadlock of its own.
        return repeats and not committed and database.dialect.is_contention(connection, error)

    return until_free(connection, run, is_worth_it)
