"""Intervals: schedules with a fixed number of seconds between two runs.

The runs are aligned to the epoch (1970-01-01 00:00 UTC), or to the instant at which they begin, not
to the start of a process: with an interval of 10 seconds they are due at :00, :10, :20 of each
minute, so that several schedulers agree on the slots. Time zones and their changes do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..durations import LONGEST, UNITS, from_words, in_words
from .cron import InvalidScheduleError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST = timedelta(seconds=1)

#: The beginning of an interval's expression, unlike that of any cron schedule.
EVERY = "every "


@dataclass(frozen=True)
class Interval:
    """A schedule with one run every ``period``.

    Raises InvalidScheduleError unless the period is a timedelta of whole seconds, from one second
    to ten years.
    """

    period: timedelta
    anchor: datetime = EPOCH
    """One of the runs, from which all others follow."""

    def __post_init__(self) -> None:
        if not isinstance(self.period, timedelta):
            raise InvalidScheduleError(
                f"an interval is a timedelta, not {type(self.period).__name__}"
            )
        if not SHORTEST <= self.period <= LONGEST:
            raise InvalidScheduleError(
                f"the interval {self.period} is not from one second to {LONGEST.days} days"
            )
        if self.period.microseconds:
            raise InvalidScheduleError(
                f"the interval {self.period} is not a whole number of seconds"
            )

    @property
    def expression(self) -> str:
        """The stored form of the interval, such as ``every 90 seconds``."""
        return EVERY + in_words(self.period).removeprefix("1 ")

    @classmethod
    def read(cls, expression: str) -> Interval:
        """Return the interval with this ``expression``."""
        text = expression.removeprefix(EVERY)
        try:
            period = from_words(f"1 {text}" if text in UNITS else text)
        except ValueError as error:
            raise InvalidScheduleError(
                f"the interval {expression!r} is not usable: {error}"
            ) from None
        return cls(period)

    @property
    def timezone_name(self) -> str:
        """Always UTC."""
        return "UTC"

    def next_after(self, instant: datetime) -> datetime:
        """Return the first run after ``instant``, in UTC.

        Raises ValueError for a naive datetime.
        """
        if instant.tzinfo is None:
            raise ValueError(f"next_after() needs an aware datetime, not {instant!r}")
        return self.anchor + ((instant - self.anchor) // self.period + 1) * self.period
