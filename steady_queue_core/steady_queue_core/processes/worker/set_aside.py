"""Outcomes of jobs with a limit that are stored later, because a semaphore is locked."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from .attempt import RunResult

#: Seconds until they are tried again; doubled with each try that fails, up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 8.0


class SetAside:
    """Results that wait for a lock, so that the other jobs of the worker do not.

    Whoever enqueues a job with a limit in a long transaction keeps the semaphore of its key locked
    as long. The outcomes of such jobs wait for it, which takes the time-out of a lock each time.
    """

    def __init__(self) -> None:
        self.results: list[RunResult] = []
        self._due_at = 0.0
        self._pause = FIRST_PAUSE

    def __bool__(self) -> bool:
        return bool(self.results)

    @property
    def until_due(self) -> float:
        """Seconds until they are to be tried again; infinite if there are none."""
        return max(0.0, self._due_at - time.monotonic()) if self.results else math.inf

    def put_limited(self, batch: Sequence[RunResult]) -> list[RunResult]:
        """Take those of a batch that have a limit, since it met a lock; return the others."""
        limited = [each for each in batch if _is_limited(each)]
        if limited:
            self.results += limited
            self._due_at = time.monotonic() + self._pause
            self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        else:  # It is no semaphore: all of the database is busy, and who waits has its turn.
            self._due_at, self._pause = 0.0, FIRST_PAUSE
        return [each for each in batch if not _is_limited(each)]

    def take(self) -> list[RunResult]:
        """Return all of them, which are to be tried again."""
        taken, self.results = self.results, []
        return taken

    def note_stored(self, batch: Sequence[RunResult]) -> None:
        """Note that a batch met no lock."""
        if any(map(_is_limited, batch)):
            self._pause = FIRST_PAUSE


def _is_limited(result: RunResult) -> bool:
    return result.outcome.concurrency_key is not None
