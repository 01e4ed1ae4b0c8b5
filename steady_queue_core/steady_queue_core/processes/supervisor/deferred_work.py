"""Work on the database that has to be done sooner or later."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from ...logging import about, get_logger
from ..base.database import Unavailable

logger = get_logger("steady_queue.supervisor")


class DeferredWork:
    """Keeps work in order until the database answers. Any thread may add some, one does it."""

    def __init__(self) -> None:
        self._work: deque[Callable[[], None]] = deque()
        self._retry_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._work)

    def add(self, work: Callable[[], None]) -> None:
        """Have ``work`` done after all that was postponed before it."""
        self._work.append(work)

    def catch_up(self, *, now: bool = False) -> None:
        """Do what was postponed, unless the database has asked for a pause; ``now``: even so."""
        while self._work and (now or time.monotonic() >= self._retry_at):
            try:
                self._work[0]()
            except Unavailable as unavailable:
                self._retry_at = time.monotonic() + unavailable.pause
                return
            except Exception:
                logger.exception(
                    "Work on the queue's database failed; it is given up",
                    extra=about("supervisor.work_given_up"),
                )
            self._work.popleft()
