"""The arithmetic of a rate: how far apart starts are, and how much earlier they may come.

All times are whole microseconds. ``docs/decisions/rate-limits.md`` has the proof of the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...timezones import MICROSECOND
from .stored import JobRate

#: What starts may be earlier or later than their even pace, at least: the time from a permission to
#: the start, and from a slot to the permission. A rate whose burst is shorter is a little slower.
LEAST_SLACK = 200_000
#: Most of the time from a permission to the start.
LONGEST_LATENESS = 500_000
#: How much older the time may be that a database tells.
RESOLUTION = 1_000


@dataclass(frozen=True, slots=True)
class Pace:
    """``count`` starts take ``span``; one may be permitted ``allowance`` before the others are
    over, and its task begins up to ``lateness`` after that, if a worker has ``patience`` only."""

    span: int
    count: int
    allowance: int
    lateness: int

    @classmethod
    def of(cls, rate: JobRate) -> Pace:
        """Return the pace at which no window of ``per`` has more than ``to + burst`` starts."""
        per, most = rate.per // MICROSECOND, rate.to + rate.burst
        span, count = per, rate.to
        if span * most < (per + LEAST_SLACK) * count:
            span, count = per + LEAST_SLACK, most
        slack = most * span // count - per
        lateness = min(slack // 2, LONGEST_LATENESS)
        return cls(span, count, slack - lateness - RESOLUTION - 1, lateness)

    @property
    def patience(self) -> int:
        """How long after its permission a worker starts a job. The rest passes unseen until the
        task has begun."""
        return 3 * self.lateness // 4

    def time_of(self, starts: int) -> int:
        """Return how long so many starts take."""
        return -(-starts * self.span // self.count)

    def left_after(self, waited: int) -> int:
        """Return by how much the gate goes back for a start that was permitted so long ago, and has
        not taken place. Not by a whole one: those after it may have come as much later."""
        return max(0, self.time_of(1) - waited)
