"""Where claimed jobs run: the threads, or the event loop, and how they get on there."""

from __future__ import annotations

import math
import time
from typing import Protocol

from ...dialects import ClaimedJob
from .thread_pool import Work

#: Seconds after which jobs that wait behind long tasks go back to the queue.
STALL = 0.25


class Runner(Protocol):
    """What runs jobs: at once, or when there is room."""

    @property
    def waiting(self) -> int: ...
    @property
    def running(self) -> int: ...
    def submit(self, work: list[Work], /) -> None: ...
    def withdraw(self) -> list[ClaimedJob]: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


class Place:
    """Counts the jobs at a runner. Used by the worker's main thread only."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        #: Jobs that run or wait there.
        self.held = 0
        self._progress_at = 0.0

    def submit(self, work: list[Work]) -> None:
        """Hand jobs over."""
        if work:
            if not self.runner.waiting:
                self._progress_at = time.monotonic()
            self.held += len(work)
            self.runner.submit(work)

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that have not begun."""
        withdrawn = self.runner.withdraw()
        self.held -= len(withdrawn)
        return withdrawn

    def note_end(self) -> None:
        """Note that a job there has ended."""
        self.held -= 1
        self._progress_at = time.monotonic()

    @property
    def until_stall(self) -> float:
        """Seconds until the jobs that wait have waited in vain; infinite while none waits."""
        return self._progress_at + STALL - time.monotonic() if self.runner.waiting else math.inf
