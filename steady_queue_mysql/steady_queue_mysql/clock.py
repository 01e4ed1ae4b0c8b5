"""Instants: UTC by the server's clock, in ``datetime(6)`` columns, which know no time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import DateTimeField, Func

#: Unlike NOW() it does not depend on the session's time zone. It moves on within a transaction.
NOW_SQL = "UTC_TIMESTAMP(6)"


class UtcNow(Func):
    """The server's present time in UTC."""

    template = NOW_SQL
    arity = 0
    output_field = DateTimeField()


def to_text(value: datetime) -> str:
    """Return an aware instant as it is stored."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def read(value: object, otherwise: datetime) -> datetime:
    """Return a stored instant, aware; of a row that somebody has damaged, ``otherwise``."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else otherwise


def microseconds(value: timedelta | float) -> int:
    """Return a length of time, given as such or in seconds, in whole microseconds."""
    if not isinstance(value, timedelta):
        value = timedelta(seconds=value)
    return value // timedelta(microseconds=1)
