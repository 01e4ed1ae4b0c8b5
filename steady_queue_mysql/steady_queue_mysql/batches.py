"""Batches of statements, sent in one packet: a round trip costs more than most statements do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import DataError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

from .errors import ABORTED, is_server_error, is_unanswered_ping, translated_errors
from .server import Server, server_of

#: Characters of statements and values in one batch; a statement that has more is one by itself.
MAX_LENGTH = 500_000
#: The most bytes that a character takes, escaped.
MAX_BYTES = 4
#: Characters that are escaped with a backslash.
ESCAPED = "\\'\"\0\n\r\x1a"


class Statement(NamedTuple):
    """A statement with the values of its ``%s`` placeholders. Numbers are part of its text."""

    sql: str
    values: Sequence[str | None] = ()

    @property
    def length(self) -> int:
        return len(self.sql) + sum(len(value) + 2 for value in self.values if value is not None)

    @property
    def size(self) -> int:
        """The number of bytes sent to the server."""
        texts = [value for value in self.values if value is not None]
        escapes = sum(text.count(character) for text in texts for character in ESCAPED)
        return len(self.sql) + escapes + sum(len(text.encode()) + 2 for text in texts)


class Result(NamedTuple):
    """The result of a statement."""

    rows: Sequence[tuple[Any, ...]]
    #: How many rows were found, or changed.
    affected: int = 0


def execute_all(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> list[Result]:
    """Execute ``statements`` in order, in as few batches as possible; return their results.

    The first error ends them all. Raises ``DataError`` for a statement that is larger than the
    server accepts, before any statement is sent.
    """
    server = server_of(connection)
    for statement in statements:
        _require_fitting(statement, server.max_packet)
    results: list[Result] = []
    with (
        translated_errors(connection),
        _told_as_abort(server),
        _closed_if_unread(connection),
        _without_warnings(connection),
        _cursor(connection) as cursor,
    ):
        for batch in _batches(statements, _max_length(server)):
            results += _execute(cursor, batch)
    return results


def _max_length(server: Server) -> int:
    # Galera aborts transactions at any time, and tells it with the next packet. Between two
    # statements of one packet the error is lost: those that follow are executed without a
    # transaction, and COMMIT succeeds.
    if server.is_galera:
        return 0
    return min(MAX_LENGTH, server.max_packet // (2 * MAX_BYTES))


def _batches(statements: Iterable[Statement], max_length: int) -> Iterator[list[Statement]]:
    batch: list[Statement] = []
    length = 0
    for statement in statements:
        if batch and length + statement.length > max_length:
            yield batch
            batch, length = [], 0
        batch.append(statement)
        length += statement.length
    if batch:
        yield batch


def _require_fitting(statement: Statement, largest: int) -> None:
    # Bytes are counted only for statements near the limit: counting costs as much as sending.
    if statement.length * MAX_BYTES + 100 > largest and statement.size + 100 > largest:
        raise DataError(
            f"Statement of {statement.size} bytes is too large for the server: its "
            f"max_allowed_packet is {largest}. Store less, or raise that setting."
        )


def discard(connection: BaseDatabaseWrapper) -> None:
    """Close the connection, or at least forget it; never raises."""
    try:
        connection.close()
    except Exception:
        wrapper: Any = connection
        wrapper.connection = None


def _execute(cursor: Any, batch: Sequence[Statement]) -> list[Result]:
    sql = "; ".join(statement.sql for statement in batch)
    values = [value for statement in batch for value in statement.values]
    results = []
    cursor.execute(sql, values or None)
    while True:
        rows = cursor.fetchall() if cursor.description else ()
        results.append(Result(rows, cursor.rowcount))
        if not cursor.nextset():
            return results


@contextmanager
def _cursor(connection: BaseDatabaseWrapper) -> Iterator[Any]:
    """Give Django's cursor if it has anything to do, otherwise the driver's own, which takes less
    time."""
    if connection.in_atomic_block or portable.is_watched(connection):
        with connection.cursor() as cursor:
            yield cursor
        return
    wrapper: Any = connection
    wrapper.validate_thread_sharing()
    wrapper.close_if_health_check_failed()
    wrapper.ensure_connection()
    with wrapper.wrap_database_errors, wrapper.connection.cursor() as cursor:
        yield cursor


@contextmanager
def _told_as_abort(server: Server) -> Iterator[None]:
    """Raise an unanswered ping as the abort of a transaction, where the server is of Galera.

    MySQL's own driver pings before it makes a cursor. The node answers the ping with the abort, and
    the driver says only that there is no connection. It is closed, and the next try opens another:
    if there is none, that one tells so.
    """
    try:
        yield
    except OperationalError as error:
        if server.is_galera and is_unanswered_ping(error):
            raise OperationalError(ABORTED, "The cluster aborted the transaction") from error
        raise


@contextmanager
def _closed_if_unread(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Close the connection if results may be left on it: they would be taken for later ones.

    An error that the server sends is the last result of its batch.
    """
    try:
        yield
    except BaseException as error:
        if not is_server_error(error):
            discard(connection)
        raise


@contextmanager
def _without_warnings(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep MySQL's own driver from fetching warnings, as it does with DEBUG.

    It would fetch them between two results, lose those that follow, and raise an error after all
    statements have been executed.
    """
    wrapper: Any = connection
    raw = wrapper.connection
    if not getattr(raw, "get_warnings", False):
        yield
        return
    raises = raw.raise_on_warnings
    raw.raise_on_warnings = raw.get_warnings = False
    try:
        yield
    finally:
        raw.get_warnings, raw.raise_on_warnings = True, raises
