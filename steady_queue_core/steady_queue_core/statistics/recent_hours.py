"""Sums of the hours whose minutes are still kept, so that a day need not be read by the minute."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet

from ..dialects import Dialect
from ..models import Statistic
from .storage import BATCH, Upkeep
from .sums import Sums, first_unsummed, forget, sum_up_quarter
from .tally import GRACE, HOUR, KEPT, MINUTE, QUARTER, QUARTER_SUM, RECENT_HOUR


def sum_up(connection: BaseDatabaseWrapper, dialect: Dialect) -> int:
    """Sum up the next hour that is over, or the next six hours, and forget some that are long past;
    return how many rows that were. It does no harm if two dispatchers do so at once: they store the
    same sums."""
    present = int(dialect.current_time(connection).timestamp() // 60)
    rows = Statistic.objects.using(connection.alias)
    _forget_of_the_future(rows, present)
    past = Q()
    for span in (RECENT_HOUR, QUARTER_SUM):
        past |= Q(span=span, minute__lt=present - KEPT[span])
    gone, _ = rows.filter(
        pk__in=list(rows.filter(past).order_by("minute").values_list("pk", flat=True)[:BATCH])
    ).delete()
    return gone + _sum_up_hour(connection, dialect, rows, present) or sum_up_quarter(
        connection, dialect, rows, present
    )


def _forget_of_the_future(rows: QuerySet[Statistic], present: int) -> None:
    """Delete sums that were made while the clock was ahead, perhaps before the hours were over."""
    sums = rows.filter(span__in=(RECENT_HOUR, QUARTER_SUM), minute__gt=present - 2 * QUARTER)
    forget(sums.filter(stored_minute__gt=present + 1))


def _sum_up_hour(
    connection: BaseDatabaseWrapper, dialect: Dialect, rows: QuerySet[Statistic], present: int
) -> int:
    hour = _next_hour(rows, present)
    if hour is None or present < hour + HOUR + GRACE:
        return 0
    minutes = rows.filter(span=MINUTE)
    sums = Sums(minutes.filter(minute__gte=hour, minute__lt=hour + HOUR))
    for minute in range(hour, hour + HOUR):  # At once, they could be a hundred thousand.
        sums.add(minutes.filter(minute=minute))
    return sums.store(connection, dialect, RECENT_HOUR, hour, present)


def _next_hour(rows: QuerySet[Statistic], present: int) -> int | None:
    """Return the first hour that has minutes, all of which are there, and was not summed up."""
    oldest = -(-(present - KEPT[MINUTE]) // HOUR) * HOUR
    recent = rows.filter(span=RECENT_HOUR, minute__gte=oldest, minute__lte=present)
    summed = set(recent.order_by().values_list("minute", flat=True).distinct())
    known = rows.filter(span=MINUTE, minute__lte=present)
    minutes = known.order_by("minute").values_list("minute", flat=True)
    return first_unsummed(
        lambda start: minutes.filter(minute__gte=start).first(), summed, HOUR, oldest, present
    )


class RecentHours(Upkeep):
    """Sums up now and then, an hour at a time."""

    INTERVAL, work = 300.0, sum_up
