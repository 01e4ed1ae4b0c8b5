"""Stores counts, and makes hours of minutes, and one total of hours that are long past."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ..dialects import Dialect
from ..models import Statistic
from .tally import HISTOGRAMS, MAXIMA, SUMS, Tally

KEY = ["span", "minute", "queue_name", "task_path", "writer"]
COUNTED = [*SUMS, *MAXIMA, *HISTOGRAMS]
#: Lengths of the spans of rows, in minutes: a minute, an hour, and, as no length, all of the past.
MINUTE, HOUR, PAST = 1, 60, 0
#: Minutes for which rows of minutes and of hours are kept.
KEPT = {MINUTE: 48 * 60, HOUR: 90 * 24 * 60}
#: The span that rows of a span are added to when they are no longer kept.
NEXT = {MINUTE: HOUR, HOUR: PAST}
#: Most rows that one transaction rolls up.
BATCH = 500
#: The writer of rows that are sums of those of others.
NOBODY = 0


def store(connection: BaseDatabaseWrapper, dialect: Dialect, rows: Sequence[Statistic]) -> None:
    """Store the rows of one process in place of what it has stored for them before."""
    dialect.upsert(connection, rows, KEY, COUNTED)


def roll_up(connection: BaseDatabaseWrapper, dialect: Dialect) -> int:
    """Roll up a batch of rows that are no longer kept; return how many there were."""
    present = int(dialect.current_time(connection).timestamp() // 60)
    return sum(_roll_up(connection, dialect, span, present - kept) for span, kept in KEPT.items())


def _roll_up(connection: BaseDatabaseWrapper, dialect: Dialect, span: int, before: int) -> int:
    rows = Statistic.objects.using(connection.alias)
    with dialect.transaction(connection):
        # Locked: another dispatcher waits, and finds them gone.
        old = rows.filter(span=span, minute__lt=before).order_by("span", "minute", "pk")
        batch = list(dialect.lock_rows(connection, old, wait=True)[:BATCH])
        if not batch:
            return 0
        sums: dict[tuple[int, str, str], Tally] = {}
        for row in batch:
            minute = row.minute - row.minute % HOUR if NEXT[span] == HOUR else 0
            key = minute, row.queue_name, row.task_path
            sums.setdefault(key, Tally()).add(Tally.of(row))
        for key, tally in sorted(sums.items()):
            _add(connection, dialect, NEXT[span], key, tally)
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
    empty = Statistic(**named, **Tally().values())
    dialect.insert_if_absent(connection, empty, KEY)
    for row in dialect.lock_rows(connection, rows.filter(**named), wait=True):
        total = Tally.of(row)
        total.add(tally)
        rows.filter(pk=row.pk).update(**total.values())


class RollUp:
    """Rolls up now and then, a batch at a time."""

    #: Seconds between two times.
    INTERVAL = 600.0

    def __init__(self) -> None:
        self._next = time.monotonic()

    def do(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> float:
        """Roll up a batch if it is time; return the seconds until the next one."""
        if time.monotonic() >= self._next and not roll_up(connection, dialect):
            self._next = time.monotonic() + self.INTERVAL
        return max(0.0, self._next - time.monotonic())
