"""Converts between local time in a time zone and instants."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def to_local(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the naive local time at an aware ``instant``."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def instant_of(local: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the instant of a naive ``local`` time, in UTC.

    For an ambiguous time, the first instant; for a skipped time, the first instant after the gap;
    None if the zone skips the whole date (Samoa had no 30 December 2011).
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
    """Return the first instant after ``start``, up to ``end``, at which the UTC offset changes.

    Exact to the second. Misses two changes within a day that undo each other, which no zone has
    ever had.
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
