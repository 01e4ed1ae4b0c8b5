"""Database work that waits until the database is available."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...project_code import contained
from ..base.database import Unavailable

logger = get_logger("steady_queue.supervisor")


class DeferredWork:
    """A queue of callables, run in order. Any thread may add to it; one thread runs it."""

    def __init__(self) -> None:
        self._work: deque[Callable[[], None]] = deque()
        self._retry_at = 0.0
        #: Whether some of it waits for a lock, though the database is there.
        self.is_held_up = False

    def __bool__(self) -> bool:
        return bool(self._work)

    def add(self, work: Callable[[], None]) -> None:
        """Run ``work`` after all that was added before it, unless that waits for a lock."""
        self._work.append(work)

    def run(self, *, now: bool = False) -> None:
        """Run the work, unless a pause after an outage has not passed; ``now`` ignores that."""
        if not now and time.monotonic() < self._retry_at:
            return
        held_up = 0
        while len(self._work) > held_up:
            try:
                contained(self._work[0])
            except Unavailable as unavailable:
                self._retry_at = time.monotonic() + unavailable.pause
                if unavailable.lost and not unavailable.refused:
                    break
                # It is put behind the others, which may need other rows, and be accepted.
                self._work.rotate(-1)
                held_up += 1
                continue
            except Exception:
                log_internal_error(
                    logger,
                    "Deferred work on the queue's database failed; dropping it",
                    extra=about("supervisor.work_given_up"),
                )
            self._work.popleft()
        self.is_held_up = held_up > 0
