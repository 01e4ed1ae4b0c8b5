"""Rows that we know, in the form of a table or of a list of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from .packets import Statement

T = TypeVar("T")

#: Rows that one statement takes.
MOST_ROWS = 200

Value = int | str | None


class Raw(str):
    """A piece of SQL among values."""


def statement(sql: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> Statement:
    """Return a statement with ``{given}`` in it replaced by a table of ``rows``, named ``given``.

    The optimizer knows that such a table is small, reads it first when told to (STRAIGHT_JOIN),
    and finds what belongs to it by the primary key. For ``IN (...)`` it would rather read, and
    lock, the whole of a table that looks empty.
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


def portions(rows: Sequence[T], size: int = MOST_ROWS) -> Iterator[Sequence[T]]:
    """Cut ``rows`` into what a statement takes."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


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
