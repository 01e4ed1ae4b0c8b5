"""Schedules with a single run, at an instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .cron import InvalidScheduleError
from .instants import checked_instant

#: The beginning of the expression, unlike that of any cron schedule.
AT = "at "


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
