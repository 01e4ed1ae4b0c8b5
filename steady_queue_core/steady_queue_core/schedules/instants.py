"""Instants that are given to a schedule."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone

from ..timezones import to_utc

#: Anything beyond is probably a mistake, and the dates around it may be beyond the calendar.
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


def checked_instant(name: str, value: object) -> datetime:
    """Return a datetime in UTC; a naive one is local time if the project has no time zones.

    Raises TypeError for other types, and ValueError for a naive datetime under ``USE_TZ``, or one
    that is not from 1970 to 2999. Both name ``name``.
    """
    if not isinstance(value, datetime):
        raise TypeError(f"{name} must be a datetime, not {type(value).__name__}")
    if settings.USE_TZ and timezone.is_naive(value):
        raise ValueError(
            f"{name} is a naive datetime, {value.isoformat()}: give it a time zone, as "
            "timezone.now() has one"
        )
    try:
        instant = to_utc(value)
    except OverflowError:
        instant = LATEST
    if not EARLIEST <= instant < LATEST:
        raise ValueError(f"{name} is not from 1970 to 2999: {value.isoformat()}")
    return instant
