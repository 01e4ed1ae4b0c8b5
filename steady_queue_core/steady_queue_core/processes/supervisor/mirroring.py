"""Keeping the rows of the recurring tasks in code as the code is."""

from __future__ import annotations

import math
import time

from ..base.database import QueueDatabase
from ..scheduler import mirror

#: Seconds until rows that were left to schedulers with other code are looked at again.
PAUSE = 60.0


class Mirroring:
    """Mirrors the recurring tasks of the code once, and removes what others still need later."""

    def __init__(self, database: QueueDatabase) -> None:
        self.database = database
        self._next = math.inf

    def begin(self) -> None:
        """Copy the recurring tasks to their table. Raises ``Unavailable``."""
        self._note(self.database.run(mirror.mirror))

    def step(self) -> None:
        """Look whether rows that were left are needed still. Raises ``Unavailable``."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PAUSE
            self._note(self.database.run(mirror.tidy))

    def _note(self, has_left: bool) -> None:
        self._next = time.monotonic() + PAUSE if has_left else math.inf
