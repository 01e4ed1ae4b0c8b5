"""Outcomes that are stored later, because somebody has locked a row that they change."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence

from .attempt import RunResult
from .needed_rows import Row, needed_by, shared_by

#: Seconds until they are tried again; doubled with each try that fails, up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 8.0


class SetAside:
    """Results that wait for a lock, so that the other jobs of the worker do not.

    Whoever enqueues a job with a limit in a long transaction keeps the semaphore of its key locked
    as long, and whoever adds jobs to a batch keeps that. The outcomes of such jobs wait for it,
    which takes the time-out of a lock each time.
    """

    def __init__(self) -> None:
        self.results: list[RunResult] = []
        #: The rows that they wait for, as far as they are known, and others of theirs.
        self._rows: set[Row] = set()
        self._due_at = 0.0
        self._pause = FIRST_PAUSE

    def __bool__(self) -> bool:
        return bool(self.results)

    @property
    def until_due(self) -> float:
        """Seconds until they are to be tried again; infinite if there are none."""
        return max(0.0, self._due_at - time.monotonic()) if self.results else math.inf

    def put(self, results: Sequence[RunResult], rows: Collection[Row] = ()) -> None:
        """Take results that cannot be stored now, since these ``rows`` are locked."""
        if not results:
            return
        due_at = self._due_at if self.results else math.inf
        self.results += results
        self._rows.update(rows)
        if rows:  # Whether they are free is asked without waiting for them.
            self._pause = FIRST_PAUSE
        # Those that are here already do not wait longer for it.
        self._due_at = min(due_at, time.monotonic() + self._pause)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)

    def put_locked(self, batch: Sequence[RunResult], locked: Collection[Row]) -> list[RunResult]:
        """Take those of a batch that change one of the ``locked`` rows; return the others."""
        blocked = [each for each in batch if not needed_by(each.outcome).isdisjoint(locked)]
        self.put(blocked, locked)
        taken = set(map(id, blocked))
        return [each for each in batch if id(each) not in taken]

    def put_sharing(self, batch: Sequence[RunResult]) -> list[RunResult]:
        """Take those of a batch that change rows which others change too, since it met a lock of
        which nobody knows where it is; return the others."""
        sharing = [each for each in batch if shared_by(each.outcome)]
        if not sharing:  # All of the database is busy, and who waits has its turn.
            self._due_at, self._pause = 0.0, FIRST_PAUSE
        self.put(sharing)
        return [each for each in batch if not shared_by(each.outcome)]

    def put_akin(self, batch: Sequence[RunResult]) -> list[RunResult]:
        """Take those of a batch that would wait for the same rows; return the others."""
        if not self._rows:
            return list(batch)
        akin = [each for each in batch if not shared_by(each.outcome).isdisjoint(self._rows)]
        self.results += akin
        taken = set(map(id, akin))
        return [each for each in batch if id(each) not in taken]

    def take(self) -> list[RunResult]:
        """Return all of them, which are to be tried again."""
        taken, self.results = self.results, []
        self._rows.clear()
        return taken

    def note_stored(self, batch: Sequence[RunResult]) -> None:
        """Note that a batch met no lock."""
        if self._pause > FIRST_PAUSE and any(shared_by(each.outcome) for each in batch):
            self._pause = FIRST_PAUSE
