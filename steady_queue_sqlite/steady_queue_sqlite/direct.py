"""Short transactions on the driver itself: Django's cursor and its bookkeeping of a transaction
take longer than the statements of one job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

from .lock_file import lock_file
from .transactions import transaction, try_until_free
from .write_turns import in_turn

#: Runs a statement with its values, and returns its rows.
Run = Callable[[str, Sequence[Any]], list[Any]]


@contextmanager
def direct_transaction(connection: BaseDatabaseWrapper) -> Iterator[Run]:
    """Begin an immediate transaction, and give a function that runs statements in it.

    Joins the caller's transaction, and uses Django's cursor, where there is a transaction or
    somebody looks at the statements.
    """
    connection.validate_thread_sharing()  # Before anything that might connect.
    joins = connection.in_atomic_block or not connection.get_autocommit()
    if joins or portable.is_watched(connection, in_turn):
        with transaction(connection), connection.cursor() as cursor:
            yield lambda statement, values: _fetched(cursor.execute(statement, values))
        return
    connection.ensure_connection()
    wrapper: Any = connection
    driver = wrapper.connection
    with lock_file(connection), wrapper.wrap_database_errors:
        try_until_free(connection, lambda: _begin(wrapper))
        try:
            yield lambda statement, values: _fetched(driver.execute(_native(statement), values))
            driver.execute("COMMIT")
        except BaseException:
            # Does nothing if SQLite has ended the transaction by itself.
            driver.rollback()
            raise


def _begin(wrapper: Any) -> None:
    with wrapper.wrap_database_errors:  # What is tried again is told by Django's classes.
        wrapper.connection.execute("BEGIN IMMEDIATE")


def _fetched(cursor: Any) -> list[Any]:
    return list(cursor.fetchall())


@cache
def _native(statement: str) -> str:
    """Return a statement with the placeholders of the driver."""
    return statement.replace("%s", "?").replace("%%", "%")
