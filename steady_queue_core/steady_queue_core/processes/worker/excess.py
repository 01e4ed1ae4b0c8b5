"""How many more jobs than a worker has room for it claims, while most of them do not start."""

from __future__ import annotations

#: The first such number, by what it grows and shrinks, and the largest one.
FIRST, FACTOR, MOST = 16, 4, 240


class Excess:
    """Jobs with rate limits that are sent away for their slots take no room: they are claimed by
    the dozen, so that those behind them need not wait for many turns. Main thread only."""

    def __init__(self) -> None:
        #: How many jobs are claimed beyond those that there is room for.
        self.number = 0
        #: How many of the jobs held are those of the last turn that were sent away.
        self.sent_away = 0

    def note(self, *, claimed: int, sent_away: int, fits: bool) -> None:
        """Note how many jobs were claimed, how many of them do not start, and whether there is room
        for the others."""
        self.sent_away = sent_away
        if not fits or 2 * sent_away < claimed:
            self.number //= FACTOR
        else:
            self.number = min(MOST, self.number * FACTOR or FIRST)
