"""Lane: one of the two places where a worker's jobs run, its threads or its event loop."""

from __future__ import annotations

import math
import time
from typing import Protocol

from ...dialects import ClaimedJob
from .prefetch import Throughput
from .thread_pool import Work

#: Seconds after which jobs that wait behind long tasks go back to the queue.
STALL = 0.25


class Runner(Protocol):
    """Runs a limited number of jobs at once; jobs that have not started can be withdrawn."""

    @property
    def waiting(self) -> int: ...
    @property
    def running(self) -> int: ...
    def submit(self, work: list[Work], /) -> None: ...
    def withdraw(self) -> list[ClaimedJob]: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


class Lane:
    """Counts the jobs of a runner and notices when they stall. Main thread only."""

    def __init__(self, runner: Runner, throughput: Throughput) -> None:
        self.runner, self.throughput = runner, throughput
        #: Number of jobs that run or wait in this lane.
        self.held = 0
        self._progress_at = 0.0

    def submit(self, work: list[Work]) -> None:
        """Queue jobs for the runner."""
        if work:
            if not self.runner.waiting:
                self._progress_at = time.monotonic()
            self.held += len(work)
            self.runner.submit(work)

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that have not started."""
        withdrawn = self.runner.withdraw()
        self.held -= len(withdrawn)
        return withdrawn

    def note_end(self) -> None:
        """Record that a job of this lane has ended."""
        self.held -= 1
        self._progress_at = time.monotonic()

    @property
    def until_stall(self) -> float:
        """Seconds until the waiting jobs count as stalled; infinite while none waits."""
        if not self.held or not self.runner.waiting:
            return math.inf
        return self._progress_at + STALL - time.monotonic()
