"""Stores counts, makes hours of minutes, and adds up the totals of processes that have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ..dialects import Dialect
from ..models import Statistic
from .tally import (
    ALL_TIME,
    GRACE,
    HISTOGRAMS,
    HOUR,
    KEPT,
    MAXIMA,
    MINUTE,
    QUARTER,
    QUARTER_SUM,
    RECENT_HOUR,
    SUMS,
    Tally,
)

KEY = ["span", "minute", "queue_name", "task_path", "writer"]
COUNTED = ["stored_minute", *SUMS, *MAXIMA, *HISTOGRAMS]
#: Most rows that one transaction rolls up.
BATCH = 500
#: The writer of rows that are sums of those of others.
NOBODY = 0


def store(connection: BaseDatabaseWrapper, dialect: Dialect, rows: Sequence[Statistic]) -> None:
    """Store the rows of one process in place of what it has stored for them before. What has been
    summed up without them is to be summed up again."""
    late = _hours_over(rows)
    if not late:
        dialect.upsert(connection, rows, KEY, COUNTED)
        return
    with dialect.transaction(connection):
        dialect.upsert(connection, rows, KEY, COUNTED)
        sums = Statistic.objects.using(connection.alias)
        hours = sums.filter(span=RECENT_HOUR, minute__in=sorted(late))
        # There are none before one that is missing.
        first = min(late) - min(late) % QUARTER
        quarters = sums.filter(span=QUARTER_SUM, minute__gte=first)
        for rows_past in (hours, quarters):
            rows_past._raw_delete(connection.alias)


def _hours_over(rows: Sequence[Statistic]) -> set[int]:
    """Return the hours with minutes among these rows that may have been summed up."""
    minutes = {row.minute for row in rows if row.span == MINUTE}
    # By the clock of the host: the minute of the last outcome may be as old as the rows are.
    over = time.time() // 60 - HOUR - GRACE
    return {minute - minute % HOUR for minute in minutes if minute - minute % HOUR <= over}


def roll_up(connection: BaseDatabaseWrapper, dialect: Dialect) -> int:
    """Roll up a batch of rows of each kind that are old enough; return how many there were."""
    present = int(dialect.current_time(connection).timestamp() // 60)
    rows = Statistic.objects.using(connection.alias).order_by("span", "minute", "pk")
    minutes = rows.filter(span=MINUTE, minute__lt=present - KEPT[MINUTE])
    ended = rows.filter(
        span=ALL_TIME, minute=0, stored_minute__lt=present - KEPT[ALL_TIME]
    ).exclude(writer=NOBODY)
    past = rows.filter(span=HOUR, minute__lt=present - KEPT[HOUR]).values_list("pk", flat=True)
    gone, _ = rows.filter(pk__in=list(past[:BATCH])).delete()
    return (
        gone
        + _add_up(connection, dialect, minutes, HOUR)
        + _add_up(connection, dialect, ended, ALL_TIME)
    )


def _add_up(
    connection: BaseDatabaseWrapper, dialect: Dialect, rows: QuerySet[Statistic], span: int
) -> int:
    """Replace a batch of rows by sums of this span; return how many they were."""
    with dialect.transaction(connection):
        # Locked: another dispatcher waits, and finds them gone.
        batch = list(dialect.lock_rows(connection, rows, wait=True)[:BATCH])
        sums: dict[tuple[int, str, str], Tally] = {}
        for row in batch:
            minute = row.minute - row.minute % HOUR if span == HOUR else 0
            key = minute, row.queue_name, row.task_path
            sums.setdefault(key, Tally()).add(Tally.of(row))
        for key, tally in sorted(sums.items(), key=itemgetter(0)):
            _add(connection, dialect, span, key, tally)
        rows.filter(pk__in=[row.pk for row in batch]).delete()
        return len(batch)


def _add(
    connection: BaseDatabaseWrapper,
    dialect: Dialect,
    span: int,
    key: tuple[int, str, str],
    tally: Tally,
) -> None:
    minute, queue_name, task_path = key
    named = {
        "span": span,
        "minute": minute,
        "queue_name": queue_name,
        "task_path": task_path,
        "writer": NOBODY,
    }
    rows = Statistic.objects.using(connection.alias)
    empty = Statistic(**named, stored_minute=0, **Tally().values())
    dialect.insert_if_absent(connection, empty, KEY)
    for row in dialect.lock_rows(connection, rows.filter(**named), wait=True):
        total = Tally.of(row)
        total.add(tally)
        rows.filter(pk=row.pk).update(**total.values())


class Upkeep:
    """Does some work now and then, a part at a time."""

    #: Seconds between two times.
    INTERVAL: ClassVar[float]
    #: Does a part; returns how many rows that were, zero if nothing is left to be done.
    work: ClassVar[Callable[[BaseDatabaseWrapper, Dialect], int]]

    def __init__(self) -> None:
        self._next = time.monotonic()

    def do(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> float:
        """Do a part if it is time; return the seconds until the next one."""
        if time.monotonic() >= self._next and not type(self).work(connection, dialect):
            self._next = time.monotonic() + self.INTERVAL
        return max(0.0, self._next - time.monotonic())


class RollUp(Upkeep):
    """Rolls up now and then, a batch at a time."""

    INTERVAL, work = 600.0, roll_up
