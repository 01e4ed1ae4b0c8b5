"""The database's clock between two looks at it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class DatabaseClock:
    """Carries the last instant that the database told forward by the monotonic clock, so that
    the start of a task needs no query and follows no clock of this host."""

    def __init__(self) -> None:
        self._told = datetime.now(UTC)
        self._at = time.monotonic()

    def set(self, told: datetime) -> None:
        """Note an instant that the database has just told."""
        self._told, self._at = told, time.monotonic()

    def now(self) -> datetime:
        """Return the database's present time, aware, in UTC."""
        return self._told + timedelta(seconds=time.monotonic() - self._at)
