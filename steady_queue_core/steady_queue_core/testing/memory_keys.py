"""The unique keys of jobs in memory, under the same rules as those in databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from ..dialects import JobKey, KeyTaken, NewJob, Outcome


class Holder(NamedTuple):
    """The job that has a key, and until when if it has ended."""

    job_id: int
    until: datetime | None = None


class MemoryKeys:
    """Which job has each key. ``lives`` tells of an id whether there is such a job."""

    def __init__(self, lives: Callable[[int], bool]) -> None:
        self._holders: dict[str, Holder] = {}
        self._lives = lives

    def holder_of(self, key: JobKey | None, present: datetime) -> int | None:
        """Return the job that has a key."""
        found = None if key is None else self._holders.get(key.key)
        if found is None or not self._lives(found.job_id):
            return None
        return found.job_id if found.until is None or found.until > present else None

    def require_free(self, jobs: Sequence[NewJob], present: datetime) -> None:
        """Raise ``KeyTaken`` for the first of ``jobs`` that is not to be enqueued."""
        seen: set[str] = set()
        for number, job in enumerate(jobs):
            key = JobKey.read(job.metadata)
            if key is None:
                continue
            holder = self.holder_of(key, present)
            if key.refuses and (holder is not None or key.key in seen):
                raise KeyTaken(number, key.key, holder)
            seen.add(key.key)

    def take(self, key: JobKey | None, job_id: int) -> None:
        if key is not None:
            self._holders[key.key] = Holder(job_id)

    def start(self, job_id: int, metadata: str | None) -> bool:
        """Free the key that a job has until it starts; return whether there was one."""
        key = JobKey.read(metadata)
        return key is not None and key.ends_at_start and self._free(key.key, job_id)

    def end(self, outcome: Outcome, metadata: str | None, present: datetime) -> None:
        """Free, or keep, the key of a job that has ended."""
        key = JobKey.read(metadata)
        if key is None or not outcome.completes_job:
            return
        held = self._free(key.key, outcome.job_id)
        if held and key.keep and outcome.has_succeeded and not outcome.deletes_job:
            self._holders[key.key] = Holder(outcome.job_id, present + key.keep)

    def _free(self, key: str, job_id: int) -> bool:
        found = self._holders.get(key)
        if found is None or found.job_id != job_id:
            return False
        del self._holders[key]
        return True
