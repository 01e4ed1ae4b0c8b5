"""Sums of the hours whose minutes are still kept, so that a day need not be read by the minute."""

from __future__ import annotations

import time
from operator import itemgetter

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ..dialects import Dialect
from ..models import Statistic
from .spans import GRACE, HOUR, KEPT, MINUTE, RECENT_HOUR
from .storage import BATCH, NOBODY, store
from .tally import Tally


def sum_up(connection: BaseDatabaseWrapper, dialect: Dialect) -> int:
    """Sum up the next hour that is over, and forget some that are long past; return how many rows
    that were. It does no harm if two dispatchers do so at once: they store the same sums."""
    present = int(dialect.current_time(connection).timestamp() // 60)
    rows = Statistic.objects.using(connection.alias)
    past = rows.filter(span=RECENT_HOUR, minute__lt=present - KEPT[RECENT_HOUR])
    gone, _ = rows.filter(
        pk__in=list(past.order_by("minute").values_list("pk", flat=True)[:BATCH])
    ).delete()
    return gone + _sum_up_next(connection, dialect, rows, present)


def _sum_up_next(
    connection: BaseDatabaseWrapper, dialect: Dialect, rows: QuerySet[Statistic], present: int
) -> int:
    hour = _next_hour(rows, present)
    if hour is None or present < hour + HOUR + GRACE:
        return 0
    sums: dict[tuple[str, str], Tally] = {}
    for minute in range(hour, hour + HOUR):  # At once, they could be a hundred thousand.
        for row in rows.filter(span=MINUTE, minute=minute):
            names = str(row.queue_name), str(row.task_path)
            sums.setdefault(names, Tally()).add(Tally.of(row))
    found = [
        Statistic(
            span=RECENT_HOUR, minute=hour, queue_name=queue, task_path=task, writer=NOBODY,
            stored_minute=present, **tally.values(),
        )
        for (queue, task), tally in sorted(sums.items(), key=itemgetter(0))
    ]  # fmt: skip
    for start in range(0, len(found), BATCH):
        store(connection, dialect, found[start : start + BATCH])
    return len(found)


def _next_hour(rows: QuerySet[Statistic], present: int) -> int | None:
    """Return the first hour that has minutes, all of which are there, and was not summed up."""
    oldest = -(-(present - KEPT[MINUTE]) // HOUR) * HOUR
    recent = rows.filter(span=RECENT_HOUR, minute__gte=oldest, minute__lte=present)
    summed = set(recent.order_by().values_list("minute", flat=True).distinct())
    minutes = rows.filter(span=MINUTE).order_by("minute").values_list("minute", flat=True)
    hour: int | None = oldest
    # Most of the time only the last one is missing, and one look is enough.
    while hour is not None and hour <= present:
        if hour in summed:
            hour += HOUR
            continue
        first = minutes.filter(minute__gte=hour).first()
        if first is None or first - first % HOUR == hour:
            return None if first is None else hour
        hour = first - first % HOUR
    return None


class RecentHours:
    """Sums up now and then, an hour at a time."""

    #: Seconds between two times.
    INTERVAL = 300.0

    def __init__(self) -> None:
        self._next = time.monotonic()

    def do(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> float:
        """Sum up an hour if it is time; return the seconds until the next one."""
        if time.monotonic() >= self._next and not sum_up(connection, dialect):
            self._next = time.monotonic() + self.INTERVAL
        return max(0.0, self._next - time.monotonic())
