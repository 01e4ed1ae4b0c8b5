"""Several statements in one packet: a round trip costs more than most of them do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import DataError
from django.db.backends.base.base import BaseDatabaseWrapper

from .errors import is_told_by_server, told_alike
from .server import server_of

#: Characters of statements and values that go into one packet, unless a statement alone has more.
LARGEST = 500_000
#: Bytes that a character takes at most, escaped.
WIDEST = 4
#: Characters that get a backslash.
ESCAPED = "\\'\"\0\n\r\x1a"


class Statement(NamedTuple):
    """A statement with the values of its ``%s``. Numbers are part of its text."""

    sql: str
    values: Sequence[str | None] = ()

    @property
    def length(self) -> int:
        return len(self.sql) + sum(len(value) + 2 for value in self.values if value is not None)

    @property
    def size(self) -> int:
        """The bytes that it takes on the way to the server."""
        texts = [value for value in self.values if value is not None]
        escapes = sum(text.count(character) for text in texts for character in ESCAPED)
        return len(self.sql) + escapes + sum(len(text.encode()) + 2 for text in texts)


class Answer(NamedTuple):
    """What a statement gave: rows, or a count of rows that it found to change."""

    rows: Sequence[tuple[Any, ...]]
    found: int


def send(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> list[Answer]:
    """Execute ``statements`` in order, in as few packets as hold them; return their answers.

    The first that fails ends them all. Raises ``DataError`` for one that is larger than the server
    takes, before any of its packet is sent.
    """
    largest = server_of(connection).max_packet
    answers: list[Answer] = []
    for packet in _packets(statements, min(LARGEST, largest // (2 * WIDEST))):
        for statement in packet:
            _require_fitting(statement, largest)
        answers += _exchange(connection, packet)
    return answers


def _packets(statements: Iterable[Statement], room: int) -> Iterator[list[Statement]]:
    packet: list[Statement] = []
    length = 0
    for statement in statements:
        if packet and length + statement.length > room:
            yield packet
            packet, length = [], 0
        packet.append(statement)
        length += statement.length
    if packet:
        yield packet


def _require_fitting(statement: Statement, largest: int) -> None:
    # The count of bytes is for those that come near: it costs as much as sending them.
    if statement.length * WIDEST + 100 > largest and statement.size + 100 > largest:
        raise DataError(
            f"Statement of {statement.size} bytes is too large for the server: its "
            f"max_allowed_packet is {largest}. Store less, or raise that setting."
        )


def drop(connection: BaseDatabaseWrapper) -> None:
    """Close the connection, if need be without its knowing; never fails."""
    try:
        connection.close()
    except Exception:
        wrapper: Any = connection
        wrapper.connection = None


def _exchange(connection: BaseDatabaseWrapper, packet: Sequence[Statement]) -> list[Answer]:
    sql = "; ".join(statement.sql for statement in packet)
    values = [value for statement in packet for value in statement.values]
    answers = []
    with (
        told_alike(connection),
        _kept_in_step(connection),
        _kept_from_asking(connection),
        connection.cursor() as django_cursor,
    ):
        cursor: Any = django_cursor
        cursor.execute(sql, values or None)
        while True:
            rows = cursor.fetchall() if cursor.description else ()
            answers.append(Answer(rows, cursor.rowcount))
            if not cursor.nextset():
                return answers


@contextmanager
def _kept_in_step(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Close the connection when answers may be left on it: they would be taken for later ones.

    An error that the server tells is the last thing that it says of a packet.
    """
    try:
        yield
    except BaseException as error:
        if not is_told_by_server(error):
            drop(connection)
        raise


@contextmanager
def _kept_from_asking(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep MySQL's own driver from asking for warnings, as it does with DEBUG.

    It would ask between two answers, lose those that follow, and call it an error when all
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
