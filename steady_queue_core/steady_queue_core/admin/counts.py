"""Counting no further than a page needs: exact up to a bound, in one statement for many counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import Case, DateTimeField, F, QuerySet, Value, When

from .scope import Scope

#: Counts are exact up to here.
CAP = 10_000


class Tally(NamedTuple):
    """How many there are: exactly so many, or more."""

    number: int
    exact: bool = True
    #: The first of the instants counted, if they were asked for.
    first: datetime | None = None

    @classmethod
    def of(cls, looked_at: int, found: int, first: datetime | None = None) -> Tally:
        return cls(min(found, CAP), looked_at <= CAP, first)

    @property
    def text(self) -> str:
        """The count as pages show it: ``10,000+`` are as many or more, ``?`` is not known."""
        if self.exact:
            return f"{self.number:,}"
        return f"{self.number:,}+" if self.number else "?"


class Count(int):
    """A count for Django's own texts, which is shown as its tally is."""

    tally: Tally

    @classmethod
    def of(cls, tally: Tally, shown: int) -> Count:
        """``shown`` are on the page: that there are more, Django tells by the difference."""
        count = cls(tally.number if tally.exact else max(tally.number, shown + 1))
        count.tally = tally
        return count

    def __str__(self) -> str:
        return self.tally.text


def tallies(
    using: str,
    selections: Sequence[QuerySet[Any]],
    instant: str = "",
    scope: Scope | None = None,
) -> list[Tally]:
    """Count each of the ``selections`` up to the bound, and find the first of their instants in
    the column ``instant``. One statement; as long as they are in the order of an index, it reads
    no more than the bound for each. What is outside of ``scope`` is looked at and not counted."""
    if not selections:
        return []
    connection = connections[using]
    parts, parameters = [], []
    one: Any = F(instant) if instant else Value(1)
    if scope is not None and not scope.is_whole:
        one = Case(When(scope.has, then=one))
    for position, rows in enumerate(selections):
        marked = rows.annotate(one=one).values("one")
        sql, given = marked[: CAP + 1].query.get_compiler(using).as_sql()
        parts.append(f"SELECT {position}, COUNT(*), COUNT(one), MIN(one) FROM ({sql}) counted")
        parameters += given
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), parameters)
        counted = {position: each for position, *each in cursor.fetchall()}
    return [
        Tally.of(looked_at, found, _instant(connection, first) if instant else None)
        for looked_at, found, first in (counted[position] for position in range(len(selections)))
    ]


def _instant(connection: Any, value: Any) -> datetime | None:
    expression = Value(None, DateTimeField())
    for converter in connection.ops.get_db_converters(expression):
        value = converter(value, expression, connection)
    found: datetime | None = value
    return found
