"""Rows of values as parts of a statement: a derived table, or the VALUES of an INSERT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from .batches import Statement

T = TypeVar("T")

#: Rows, and characters in them, in one statement. A longer row has a statement to itself.
MAX_ROWS, MAX_TEXT = 200, 100_000

Value = int | str | None


class SQL(str):
    """An SQL expression among values."""


def with_table(sql: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> Statement:
    """Return a statement with ``{given}`` in it replaced by a table of ``rows``, named ``given``.

    Statements read it first (STRAIGHT_JOIN) and join other tables by their primary key (FORCE
    INDEX). For ``IN (...)``, and without the hints, the optimizer may rather read all of a table
    that looks empty, and so lock it.
    """
    named = ", ".join(
        f"{_sql(value)} AS {column}" for column, value in zip(columns, rows[0], strict=True)
    )
    others = [", ".join(map(_sql, row)) for row in rows[1:]]
    table = " UNION ALL SELECT ".join([f"SELECT {named}", *others])
    return Statement(sql.replace("{given}", f"({table}) AS given"), _parameters(rows))


def insert_rows(sql: str, rows: Sequence[Sequence[Value]]) -> Statement:
    """Return an INSERT of ``rows``; ``sql`` ends in ``VALUES``."""
    values = ", ".join(f"({', '.join(map(_sql, row))})" for row in rows)
    return Statement(f"{sql} {values}", _parameters(rows))


def with_ids(sql: str, ids: Iterable[int]) -> list[Statement]:
    """Return statements with a table of ``ids``, whose column is ``id``."""
    return [with_table(sql, ["id"], [(each,) for each in chunk]) for chunk in chunks([*ids])]


def chunks(rows: Sequence[T], length: Callable[[T], int] = lambda row: 0) -> Iterator[list[T]]:
    """Split ``rows`` for several statements; ``length`` counts the characters of a row."""
    chunk: list[T] = []
    total = 0
    for row in rows:
        total += length(row)
        if chunk and (len(chunk) == MAX_ROWS or total > MAX_TEXT):
            yield chunk
            chunk, total = [], length(row)
        chunk.append(row)
    if chunk:
        yield chunk


def text_length(row: Sequence[Value]) -> int:
    """Return the number of characters of text in a row."""
    return sum(len(value) for value in row if isinstance(value, str))


def _sql(value: Value) -> str:
    if isinstance(value, SQL):
        return str(value)
    return "%s" if isinstance(value, str) else "NULL" if value is None else str(int(value))


def _parameters(rows: Iterable[Sequence[Value]]) -> list[str | None]:
    return [
        value
        for row in rows
        for value in row
        if isinstance(value, str) and not isinstance(value, SQL)
    ]
