"""Whether somebody keeps ready jobs locked, so that claims have to go around them."""

from __future__ import annotations

import time

from django.db.backends.base.base import BaseDatabaseWrapper

#: Seconds for which claims go around locked jobs, once one of them has waited for a lock in vain.
PERIOD = 60.0


class LockedJobs:
    """Remembers that a claim has waited for a lock in vain.

    A claim passes over ready rows that are locked, and then reads their jobs as of now. Whoever
    keeps one of these locked, as by ``select_for_update()``, holds up the claim of all others. To
    look for such locks takes another statement, so it is done only for a while after one was met.
    """

    def __init__(self) -> None:
        self._until = 0.0

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> LockedJobs:
        """Return what is remembered for this connection."""
        found: LockedJobs = connection.__dict__.setdefault("steady_queue_locked_jobs", cls())
        return found

    def note_wait(self) -> None:
        """Note that a claim met a lock, which may be that of a job."""
        self._until = time.monotonic() + PERIOD

    @property
    def are_expected(self) -> bool:
        """Whether a claim has to go around them."""
        return time.monotonic() < self._until
