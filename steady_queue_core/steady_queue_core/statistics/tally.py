"""Tally: what has become of the jobs of one queue and task within a span of time."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from . import histogram

#: Their lengths in minutes. All time has none.
MINUTE, HOUR, ALL_TIME = 1, 60, 0
#: An hour whose minutes are still there: their sum, beside them.
RECENT_HOUR = -60
#: The length of six hours from midnight, UTC, on; and their sum, beside them.
QUARTER = 6 * HOUR
QUARTER_SUM = -QUARTER
#: Minutes after its end in which processes may store counts of an hour, before it is summed up.
GRACE = 3
#: Minutes for which rows of minutes and of hours are kept; and after which the totals of a process
#: that has stored none since are taken for those of one that has ended.
KEPT = {
    MINUTE: 48 * 60,
    HOUR: 90 * 24 * 60,
    ALL_TIME: 120,
    RECENT_HOUR: 52 * 60,
    QUARTER_SUM: 8 * 24 * 60,
}
MAXIMA = ("wait_max", "run_max")
HISTOGRAMS = ("wait_histogram", "run_histogram")


if TYPE_CHECKING:
    from ..models import Statistic


@dataclass(slots=True)
class Tally:
    """Counters, and sums of durations in milliseconds. ``enqueued`` counts first attempts."""

    enqueued: int = 0
    finished: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    wait_ms: int = 0
    run_ms: int = 0
    wait_max: int = 0
    run_max: int = 0
    wait_histogram: list[int] = field(default_factory=lambda: [0] * histogram.SIZE)
    run_histogram: list[int] = field(default_factory=lambda: [0] * histogram.SIZE)

    def note_wait(self, milliseconds: int) -> None:
        """Count the time from an enqueue to the first attempt."""
        self.enqueued += 1
        if milliseconds > 0:
            self.wait_ms += milliseconds
            if milliseconds > self.wait_max:
                self.wait_max = milliseconds
        self.wait_histogram[histogram.slot(milliseconds)] += 1

    def note_run(self, milliseconds: int) -> None:
        """Count the duration of an attempt."""
        if milliseconds > 0:
            self.run_ms += milliseconds
            if milliseconds > self.run_max:
                self.run_max = milliseconds
        self.run_histogram[histogram.slot(milliseconds)] += 1

    def add(self, other: Tally) -> None:
        """Add what another tally has counted."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in MAXIMA:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        for name in HISTOGRAMS:
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, [a + b for a, b in zip(mine, theirs, strict=True)])

    def since(self, earlier: Tally | None) -> Tally:
        """Return what was counted since this tally was ``earlier``; ``None``: since ever."""
        gained = Tally()
        gained.add(self)
        if earlier is not None:
            for name in SUMS:
                setattr(gained, name, getattr(self, name) - getattr(earlier, name))
            for name in HISTOGRAMS:
                mine, before = getattr(self, name), getattr(earlier, name)
                setattr(gained, name, [a - b for a, b in zip(mine, before, strict=True)])
        return gained

    @classmethod
    def of(cls, row: Statistic) -> Tally:
        """Return what a row has; zeros for values that are none, which SQLite lets a row hold."""
        tally = cls()
        for name in (*SUMS, *MAXIMA):
            setattr(tally, name, number(getattr(row, name)))
        for name in HISTOGRAMS:
            setattr(tally, name, histogram.read(getattr(row, name)))
        return tally

    def values(self) -> dict[str, Any]:
        """Return the values of a row."""
        numbers = {name: getattr(self, name) for name in (*SUMS, *MAXIMA)}
        return numbers | {name: histogram.write(getattr(self, name)) for name in HISTOGRAMS}


SUMS = tuple(each.name for each in fields(Tally) if each.name not in (*MAXIMA, *HISTOGRAMS))


def number(value: object) -> int:
    """Return a value of a row if it is a positive number, else zero."""
    return value if type(value) is int and value > 0 else 0
