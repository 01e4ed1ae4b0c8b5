"""Sums of six hours beside them, so that a week need not be read by the hour."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ..dialects import Dialect
from ..models import Statistic
from .spans import GRACE, HOUR, KEPT, MINUTE, QUARTER, QUARTER_SUM, RECENT_HOUR
from .sums import Sums, first_unsummed


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
