"""Clocks by which heartbeats are judged: the database's without its latest steps forward, and our
own, which shows that nobody could send any."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime, timedelta

from ...configuration import ResolvedOptions
from ...dialects.database import Database

#: Seconds between two looks that never count as a freeze.
MIN_FREEZE = 2.0


class SteadyClock:
    """The database's time, except that a step forward of its clock counts only after ``span``.

    Heartbeats from before a step look older than they are. With the time after which a silent
    process counts as dead as ``span``, all living ones have sent another by then. It may be behind
    the database's clock, and is never ahead of it.
    """

    def __init__(self, span: timedelta) -> None:
        self._span = span.total_seconds()
        #: Readings: when, on the monotonic clock, and how far ahead of that the database's was.
        self._readings: deque[tuple[float, float]] = deque()

    @property
    def is_unread(self) -> bool:
        """Whether there is nothing yet to compare the database's clock with."""
        return not self._readings

    def read(self, database: Database) -> datetime:
        """Return the present time, aware, in UTC."""
        # Not the lease clock: what this host sleeps through counts as a step, since processes
        # here could send no heartbeat.
        asked_at = time.monotonic()
        present = database.current_time().timestamp()
        answered_at = time.monotonic()
        self._note(answered_at, present - answered_at)
        return datetime.fromtimestamp(asked_at + min(ahead for _, ahead in self._readings), UTC)

    def _note(self, at: float, ahead: float) -> None:
        self._readings.append((at, ahead))
        # The last one from before the span stays: the clock may have been stepped after it.
        while len(self._readings) > 1 and self._readings[1][0] <= at - self._span:
            self._readings.popleft()


class FreezeWatch:
    """Notices that neither this process nor the database could go on for some time. After that,
    processes with timely heartbeats may look dead."""

    def __init__(self, options: ResolvedOptions) -> None:
        # How late a heartbeat may be.
        spare = options.process_alive_threshold - options.process_heartbeat_interval
        self._limit = max(MIN_FREEZE, spare.total_seconds() / 2)
        self._looked_at = time.monotonic()

    def reset(self) -> None:
        """Let the time since the last look count as no freeze."""
        self._looked_at = time.monotonic()

    def has_frozen(self) -> bool:
        """Return whether there was a freeze since the last look."""
        now = time.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        return passed >= self._limit
