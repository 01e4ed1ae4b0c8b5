"""Rows that we know, in the form of a table or of a list of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from .packets import Statement

T = TypeVar("T")

#: Rows, and characters in them, that one statement takes; a row that has more is one by itself.
MOST_ROWS, MOST_TEXT = 200, 100_000

Value = int | str | None


class Raw(str):
    """A piece of SQL among values."""


def statement(sql: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> Statement:
    """Return a statement with ``{given}`` in it replaced by a table of ``rows``, named ``given``.

    Read first (STRAIGHT_JOIN), it leads to the rows that belong to it by their primary key (FORCE
    INDEX). For ``IN (...)``, and without being forced, the optimizer would rather read the whole
    of a table that looks empty, and so lock it.
    """
    named = ", ".join(
        f"{_sql(value)} AS {column}" for column, value in zip(columns, rows[0], strict=True)
    )
    others = [", ".join(map(_sql, row)) for row in rows[1:]]
    table = " UNION ALL SELECT ".join([f"SELECT {named}", *others])
    return Statement(sql.replace("{given}", f"({table}) AS given"), _parameters(rows))


def insertion(sql: str, rows: Sequence[Sequence[Value]]) -> Statement:
    """Return ``sql``, which ends in ``VALUES``, with ``rows`` behind it."""
    values = ", ".join(f"({', '.join(map(_sql, row))})" for row in rows)
    return Statement(f"{sql} {values}", _parameters(rows))


def ids(sql: str, numbers: Iterable[int]) -> list[Statement]:
    """Return ``sql`` for a table of these numbers, whose column is ``id``."""
    return [statement(sql, ["id"], [(number,) for number in some]) for some in portions([*numbers])]


def portions(rows: Sequence[T], length: Callable[[T], int] = lambda row: 0) -> Iterator[list[T]]:
    """Cut ``rows`` into what a statement takes; ``length`` tells the characters of one."""
    portion: list[T] = []
    total = 0
    for row in rows:
        total += length(row)
        if portion and (len(portion) == MOST_ROWS or total > MOST_TEXT):
            yield portion
            portion, total = [], length(row)
        portion.append(row)
    if portion:
        yield portion


def length_of(row: Sequence[Value]) -> int:
    """Return how many characters of text there are in a row."""
    return sum(len(value) for value in row if isinstance(value, str))


def _sql(value: Value) -> str:
    if isinstance(value, Raw):
        return str(value)
    return "%s" if isinstance(value, str) else "NULL" if value is None else str(int(value))


def _parameters(rows: Iterable[Sequence[Value]]) -> list[str | None]:
    return [
        value
        for row in rows
        for value in row
        if isinstance(value, str) and not isinstance(value, Raw)
    ]
