"""The database's clock between two looks at it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class DatabaseClock:
    """Carries the last instant that the database told forward by the monotonic clock, so that
    the start of a task needs no query and follows no clock of this host."""

    def __init__(self) -> None:
        self.set(datetime.now(UTC))

    def set(self, told: datetime) -> None:
        """Note an instant that the database has just told."""
        # One value: a thread that reads between two would get an instant that never was.
        self._base = told, time.monotonic()

    def now(self) -> datetime:
        """Return the database's present time, aware, in UTC."""
        told, at = self._base
        return told + timedelta(seconds=time.monotonic() - at)
