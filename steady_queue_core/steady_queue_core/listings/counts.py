"""Bounded counts: exact up to a limit, many of them in one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import Case, F, QuerySet, Value, When

from .damage import suppress_damage
from .statement import Statement, stored_instants, together
from .visibility import VisibleJobs

#: Stands for the text in which selections differ: no name that a row may have.
PLACE = "\0"
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

    @classmethod
    def sum_of(cls, counts: Iterable[BoundedCount]) -> BoundedCount:
        """Return how many several of them are together."""
        known = [*counts]
        return cls(sum(each.number for each in known), all(each.exact for each in known))

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


class Alike(NamedTuple):
    """Selections that differ in one text: a hundred of them cost as much to make as one."""

    rows: Callable[[str], QuerySet[Any]]
    values: Sequence[str]
    #: How far each is counted.
    cap: int = CAP


def count_each(
    using: str,
    selections: Sequence[QuerySet[Any]],
    instant: str = "",
    visible: VisibleJobs | None = None,
    cap: int | None = None,
    alike: Alike | None = None,
) -> list[BoundedCount]:
    """Count each of the ``selections`` up to the limit, which ``cap`` may lower, then those that
    are ``alike`` up to theirs, in one statement; find the earliest value of the column ``instant``,
    unless one of these values is damaged.

    Reads at most as many rows as the limit of each selection that is in the order of an index. Rows
    that are not ``visible`` are read but not counted.
    """
    if instant:
        with suppress_damage():
            return _counted(using, selections, instant, visible, cap, alike)
    return _counted(using, selections, "", visible, cap, alike)


def _counted(
    using: str,
    selections: Sequence[QuerySet[Any]],
    instant: str,
    visible: VisibleJobs | None,
    cap: int | None,
    alike: Alike | None,
) -> list[BoundedCount]:
    most = CAP if cap is None else cap
    caps = [*[most] * len(selections), *([alike.cap] * len(alike.values) if alike else ())]
    one: Any = F(instant) if instant else Value(1)
    if visible is not None and not visible.is_unrestricted:
        one = Case(When(visible.condition, then=one))

    def compiled(rows: QuerySet[Any], most: int) -> Statement:
        return Statement.of(rows.annotate(one=one).values("one")[: most + 1], using)

    statements = [compiled(rows, most) for rows in selections]
    if alike is not None and alike.values:
        statements += _each_of(alike, compiled(alike.rows(PLACE), alike.cap))
    if not statements:
        return []
    parts = [
        (f"SELECT {position}, COUNT(*), COUNT(one), MIN(one) FROM {{rows}}", each)
        for position, each in enumerate(statements)
    ]
    counted = {position: each for position, *each in together(using, parts)}
    read = stored_instants(connections[using])
    return [
        BoundedCount.of(examined, found, read(first) if instant else None, most)
        for position, most in enumerate(caps)
        for examined, found, first in [counted[position]]
    ]


def _each_of(alike: Alike, compiled: Statement) -> Iterator[Statement]:
    for each in alike.values:
        given = [each if value == PLACE else value for value in compiled.parameters]
        yield Statement(compiled.text, given)
