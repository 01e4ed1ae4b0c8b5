"""The time in which a schedule has runs: from an instant on, until another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from .cron import Schedule
from .interval import Interval
from .once import Once
from .policies import CatchUp, following

AnySchedule: TypeAlias = Schedule | Interval | Once

RESOLUTION = timedelta(microseconds=1)


def policy_for(schedule: AnySchedule, catch_up: CatchUp) -> CatchUp:
    """Return what is done about missed runs of ``schedule``: a single one has no next one for which
    it could be skipped."""
    return "last" if isinstance(schedule, Once) and catch_up == "skip" else catch_up


@dataclass(frozen=True)
class Span:
    """The runs of a schedule from ``starts_at`` to ``ends_at``, both included.

    The runs of an interval are counted from ``starts_at``, if it is given.
    """

    schedule: AnySchedule
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def __post_init__(self) -> None:
        if isinstance(self.schedule, Interval) and self.starts_at is not None:
            anchored = replace(self.schedule, anchor=self.starts_at)
            object.__setattr__(self, "schedule", anchored)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first run after ``instant``, in UTC; ``None`` if there is none.

        Raises ValueError for a naive datetime.
        """
        if self.starts_at is not None:
            instant = max(instant, self.starts_at - RESOLUTION)
        run = self.schedule.next_after(instant)
        return run if run is not None and not self._is_past(run) else None

    def following(self, catch_up: CatchUp, last: datetime, present: datetime) -> datetime | None:
        """Return the run to enqueue after ``last``: one that was missed, or the next one; ``None``
        if there is none."""
        if catch_up == "last" and self.ends_at is not None:
            present = min(present, self.ends_at)
        return following(self.next_after, catch_up, last, present)

    def _is_past(self, instant: datetime) -> bool:
        return self.ends_at is not None and instant > self.ends_at
