"""Instants that are given to a schedule, and schedules with a single run, at one of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone

from ..timezones import to_utc
from .cron import InvalidScheduleError

#: The beginning of the expression, unlike that of any cron schedule.
AT = "at "

#: Anything beyond is probably a mistake, and the dates around it may be beyond the calendar.
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Once:
    """A schedule with one run.

    Raises InvalidScheduleError unless the instant is a datetime with a time zone, from 1970 to
    2999.
    """

    instant: datetime

    def __post_init__(self) -> None:
        try:
            checked = checked_instant("the instant of a schedule", self.instant)
        except (TypeError, ValueError) as error:
            raise InvalidScheduleError(str(error)) from None
        object.__setattr__(self, "instant", checked)

    @property
    def expression(self) -> str:
        """The stored form, such as ``at 2026-12-24T18:00:00+00:00``."""
        return AT + self.instant.isoformat()

    @classmethod
    def read(cls, expression: str) -> Once:
        """Return the schedule with this ``expression``."""
        try:
            instant = datetime.fromisoformat(expression.removeprefix(AT))
        except ValueError:
            instant = None
        if instant is None or instant.tzinfo is None:
            raise InvalidScheduleError(
                f"{expression!r} is not usable: 'at' is followed by an instant, such as "
                "2026-12-24T18:00:00+00:00"
            )
        return cls(instant)

    @property
    def timezone_name(self) -> str:
        """Always UTC."""
        return "UTC"

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the run if it is after ``instant``, in UTC.

        Raises ValueError for a naive datetime.
        """
        if instant.tzinfo is None:
            raise ValueError(f"next_after() needs an aware datetime, not {instant!r}")
        return self.instant if self.instant > instant else None


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
