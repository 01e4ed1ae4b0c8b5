"""Converts between the project's datetimes, under either ``USE_TZ``, and the queue's in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone

#: What is between has a date in every time zone, whichever a database or a reader has.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_microseconds(value: datetime) -> int:
    """Return an aware instant as whole microseconds since 1970."""
    return (value - EPOCH) // MICROSECOND


def from_microseconds(value: int) -> datetime | None:
    """Return an instant, aware and in UTC; ``None`` if it is in no calendar."""
    try:
        return EPOCH + value * MICROSECOND
    except OverflowError:
        return None


def from_utc(value: datetime) -> datetime:
    """Return an instant for the project: aware, or in naive local time without ``USE_TZ``."""
    if settings.USE_TZ:
        return value
    return timezone.make_naive(value, timezone.get_default_timezone())


def to_utc(value: datetime) -> datetime:
    """Return an instant from the project as an aware datetime in UTC."""
    if timezone.is_naive(value):
        value = timezone.make_aware(value, timezone.get_default_timezone())
    return value.astimezone(UTC)


def to_due_time(value: datetime) -> datetime:
    """Return an instant from the project, which is to be stored, as an aware datetime in UTC.

    Raises ``OverflowError`` for one that is outside the years 1 to 9999 in some time zone.
    """
    instant = to_utc(value)
    if not EARLIEST <= instant < LATEST:
        raise OverflowError
    return instant
