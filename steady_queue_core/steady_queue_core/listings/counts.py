"""Bounded counts: exact up to a limit, many of them in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import Case, DateTimeField, F, QuerySet, Value, When

from .visibility import VisibleJobs

#: Counts are exact up to this number.
CAP = 10_000


class BoundedCount(NamedTuple):
    """A number of rows: exact, or a lower bound."""

    number: int
    exact: bool = True
    #: The earliest of the counted timestamps, if they were requested.
    first: datetime | None = None

    @classmethod
    def of(
        cls, examined: int, found: int, first: datetime | None = None, cap: int | None = None
    ) -> BoundedCount:
        cap = CAP if cap is None else cap
        return cls(min(found, cap), examined <= cap, first)

    @property
    def text(self) -> str:
        """The count as pages show it: ``10,000+`` is a lower bound, ``?`` is unknown."""
        if self.exact:
            return f"{self.number:,}"
        return f"{self.number:,}+" if self.number else "?"


class ResultCount(int):
    """An int that Django's templates render like its bounded count ("10,000+")."""

    count: BoundedCount

    @classmethod
    def of(cls, count: BoundedCount, shown: int) -> ResultCount:
        """Return the count of a list with ``shown`` rows on its page. An inexact one is larger than
        that, from which Django infers that there are more."""
        result = cls(count.number if count.exact else max(count.number, shown + 1))
        result.count = count
        return result

    def __str__(self) -> str:
        return self.count.text


def count_each(
    using: str,
    selections: Sequence[QuerySet[Any]],
    instant: str = "",
    visible: VisibleJobs | None = None,
    cap: int | Sequence[int] | None = None,
) -> list[BoundedCount]:
    """Count each of the ``selections`` up to the limit, which ``cap`` may lower, for all of them or
    for each, in one statement, and find the earliest value of the column ``instant``.

    Reads at most as many rows as the limit of each selection that is in the order of an index. Rows
    that are not ``visible`` are read but not counted.
    """
    if not selections:
        return []
    connection = connections[using]
    caps = cap if isinstance(cap, Sequence) else [CAP if cap is None else cap] * len(selections)
    parts, parameters = [], []
    one: Any = F(instant) if instant else Value(1)
    if visible is not None and not visible.is_unrestricted:
        one = Case(When(visible.condition, then=one))
    for position, (rows, most) in enumerate(zip(selections, caps, strict=True)):
        marked = rows.annotate(one=one).values("one")
        sql, given = marked[: most + 1].query.get_compiler(using).as_sql()
        parts.append(f"SELECT {position}, COUNT(*), COUNT(one), MIN(one) FROM ({sql}) counted")
        parameters += given
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), parameters)
        counted = {position: each for position, *each in cursor.fetchall()}
    return [
        BoundedCount.of(
            examined, found, stored_instant(connection, first) if instant else None, most
        )
        for position, most in enumerate(caps)
        for examined, found, first in [counted[position]]
    ]


def stored_instant(connection: Any, value: Any) -> datetime | None:
    """Return the value of a column of times as the ORM would, from a statement of one's own."""
    expression = Value(None, DateTimeField())
    for converter in connection.ops.get_db_converters(expression):
        value = converter(value, expression, connection)
    found: datetime | None = value
    return found
