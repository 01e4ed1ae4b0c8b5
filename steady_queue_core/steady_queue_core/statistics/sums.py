"""Sums of rows of statistics that stay beside them: of hours, and of six hours for a week."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, QuerySet, Sum

from ..dialects import Dialect
from ..models import Statistic
from .storage import BATCH, NOBODY, store
from .tally import GRACE, HOUR, KEPT, MINUTE, QUARTER, QUARTER_SUM, RECENT_HOUR, Tally


class Sums:
    """Sums by queue and task of what is in ``parts``, all of which is added."""

    def __init__(self, parts: QuerySet[Statistic]) -> None:
        self._parts, self._seen = parts, _seen(parts)
        self._tallies: dict[tuple[str, str], Tally] = {}

    def add(self, rows: Iterable[Statistic]) -> None:
        """Add what rows have counted."""
        for row in rows:
            names = str(row.queue_name), str(row.task_path)
            self._tallies.setdefault(names, Tally()).add(Tally.of(row))

    def store(
        self,
        connection: BaseDatabaseWrapper,
        dialect: Dialect,
        span: int,
        minute: int,
        present: int,
    ) -> int:
        """Store the sums as rows of this span; return how many they are. If parts were stored
        meanwhile, they have to be made again."""
        found = [
            Statistic(
                span=span, minute=minute, queue_name=queue, task_path=task, writer=NOBODY,
                stored_minute=present, **tally.values(),
            )
            for (queue, task), tally in sorted(self._tallies.items(), key=itemgetter(0))
        ]  # fmt: skip
        with dialect.transaction(connection):
            for start in range(0, len(found), BATCH):
                store(connection, dialect, found[start : start + BATCH])
        # Parts that are stored from now on take the sums away, if these are not in time for them.
        if _seen(self._parts) != self._seen:
            forget(Statistic.objects.using(connection.alias).filter(span=span, minute=minute))
        return len(found)


def forget(sums: QuerySet[Statistic]) -> None:
    """Delete sums: they are made again."""
    sums._raw_delete(sums.db)


def _seen(parts: QuerySet[Statistic]) -> dict[str, int | None]:
    """Return what changes when parts are stored."""
    return parts.aggregate(Count("pk"), Sum("stored_minute"))


def first_unsummed(
    next_part: Callable[[int], int | None], summed: set[int], length: int, oldest: int, present: int
) -> int | None:
    """Return the first beginning, from ``oldest`` on, of a span of this length that has parts and
    is not among those summed up; ``next_part`` returns the first part from a minute on."""
    start: int | None = oldest
    # Most of the time only the last one is missing, and one look is enough.
    while start is not None and start <= present:
        if start in summed:
            start += length
            continue
        first = next_part(start)
        if first is None or first - first % length == start:
            return None if first is None else start
        start = first - first % length
    return None


def sum_up_quarter(
    connection: BaseDatabaseWrapper, dialect: Dialect, rows: QuerySet[Statistic], present: int
) -> int:
    """Sum up the next six hours that are over, once there are sums of each hour; return how many
    rows that were."""
    quarter = _next_quarter(rows, present)
    if quarter is None or present < quarter + QUARTER + GRACE:
        return 0
    if _has_unsummed_minutes(rows, quarter):
        return 0
    hours = rows.filter(span__in=(RECENT_HOUR, HOUR))
    sums = Sums(hours.filter(minute__gte=quarter, minute__lt=quarter + QUARTER))
    for hour in range(quarter, quarter + QUARTER, HOUR):
        sums.add(_of_hour(hours, hour))
    return sums.store(connection, dialect, QUARTER_SUM, quarter, present)


def _next_quarter(rows: QuerySet[Statistic], present: int) -> int | None:
    oldest = -(-(present - KEPT[QUARTER_SUM]) // QUARTER) * QUARTER
    known = rows.filter(span=QUARTER_SUM, minute__gte=oldest, minute__lte=present)
    summed = set(known.order_by().values_list("minute", flat=True).distinct())

    def next_hour(start: int) -> int | None:
        found = [
            rows.filter(span=span, minute__gte=start, minute__lte=present)
            .order_by("minute")
            .values_list("minute", flat=True)
            .first()
            for span in (RECENT_HOUR, HOUR)
        ]
        return min((each for each in found if each is not None), default=None)

    return first_unsummed(next_hour, summed, QUARTER, oldest, present)


def _has_unsummed_minutes(rows: QuerySet[Statistic], quarter: int) -> bool:
    """Whether minutes have yet to be summed up, or to become hours."""
    hours = range(quarter, quarter + QUARTER, HOUR)
    summed = rows.filter(span=RECENT_HOUR, minute__in=hours)
    without = {*hours} - {*summed.values_list("minute", flat=True).distinct()}
    return any(
        rows.filter(span=MINUTE, minute__gte=hour, minute__lt=hour + HOUR).exists()
        for hour in without
    )


def _of_hour(hours: QuerySet[Statistic], hour: int) -> list[Statistic]:
    """Return the sum of its minutes, which may have become an hour meanwhile."""
    found = list(hours.filter(minute__gte=hour, minute__lt=hour + HOUR))
    recent = [each for each in found if each.span == RECENT_HOUR]
    return recent or found
