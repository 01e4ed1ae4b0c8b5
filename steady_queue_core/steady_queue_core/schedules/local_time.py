"""From the time that a clock on the wall shows to the moment it means, and back."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def to_local(instant: datetime, zone: ZoneInfo) -> datetime:
    """The naive local time at an aware ``instant``."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def instant_of(local: datetime, zone: ZoneInfo) -> datetime | None:
    """The moment of a naive ``local`` time, in UTC.

    Of a time that is shown twice, the first; of one that is skipped, the first moment after the
    gap; None when the zone skips the whole date (Samoa had no 30 December 2011).
    """
    early = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    late = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if early <= late:
        return early
    # In a gap, fold=0 reads the time with the offset from before it and so ends up after it.
    change = first_change(late, early, zone)
    assert change is not None
    midnight = datetime.combine(local.date(), time())
    if to_local(change - SECOND, zone) < midnight and to_local(change, zone) >= midnight + DAY:
        return None
    return change


def first_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """The first moment after ``start``, up to ``end``, from which another offset applies.

    Exact to the second. Two changes within a day that undo each other are not seen; no zone has
    had that.
    """
    offset = _offset(start, zone)
    while start < end:
        step = min(start + DAY, end)
        if _offset(step, zone) != offset:
            return _narrow(start, step, zone)
        start = step
    return None


def _narrow(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    offset = _offset(before, zone)
    while after - before > SECOND:
        middle = before + (after - before) / 2
        if _offset(middle, zone) == offset:
            before = middle
        else:
            after = middle
    # Zone data has whole seconds, and the change lies in (before, after].
    return after.replace(microsecond=0)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta | None:
    return instant.astimezone(zone).utcoffset()
