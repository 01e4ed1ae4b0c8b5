"""How many more jobs than a worker has room for it claims, while most of them do not start."""

from __future__ import annotations

from collections.abc import Iterable

#: The first such number, by what it grows and shrinks, and the largest one.
FIRST, FACTOR, MOST = 16, 4, 240
#: Seconds: jobs that come back sooner are about to start, here or elsewhere.
SOON = 1.0


class Excess:
    """Jobs with rate limits that are sent away for long take no room: they are claimed by the
    dozen, so that those behind them need not wait for many turns. Main thread only."""

    def __init__(self) -> None:
        #: How many jobs are claimed beyond those that there is room for.
        self.number = 0
        #: How many of the jobs held are those of the last turn that were sent away for long.
        self.sent_away = 0

    def note(self, claimed: int, delays: Iterable[float], *, is_full: bool) -> None:
        """Note how many jobs were claimed, after how many seconds those come back that do not
        start, and whether the others leave no room."""
        self.sent_away = sum(delay >= SOON for delay in delays)
        if is_full:
            self.number = 0
        elif 2 * self.sent_away < claimed:
            self.number //= FACTOR
        else:
            self.number = min(MOST, self.number * FACTOR or FIRST)
