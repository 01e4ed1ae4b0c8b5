"""Times: UTC by the server's clock, in ``datetime(6)`` columns, which have no time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Expression, Func

#: Unlike NOW() it does not depend on the session's time zone; it moves on within a transaction.
NOW_SQL = "UTC_TIMESTAMP(6)"


class UtcNow(Func):
    """The server's present time in UTC."""

    template = NOW_SQL
    arity = 0
    output_field = DateTimeField()


def to_text(value: datetime) -> str:
    """Return an aware time as it is stored."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def now(connection: BaseDatabaseWrapper) -> Expression:
    return UtcNow()


def read(value: object, default: datetime) -> datetime:
    """Return a stored time, or ``default`` for a value that is not a time, after manual edits."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else default


def microseconds(value: timedelta | float) -> int:
    """Return a duration, or a number of seconds, in whole microseconds."""
    if not isinstance(value, timedelta):
        value = timedelta(seconds=value)
    return value // timedelta(microseconds=1)
