"""When a process that runs tasks is used up, and another one has to take its place."""

from __future__ import annotations

from ...configuration import Configuration
from ..base.system import resident_bytes


class Recycling:
    """Counts the jobs of a process and looks at its memory."""

    def __init__(self, settings: Configuration.Worker) -> None:
        self._after, self._rss = settings.recycle_after, settings.recycle_rss
        #: Jobs that have ended in this process.
        self.jobs = 0

    @property
    def begins_too_large(self) -> bool:
        """Whether the process takes too much memory before it has run anything."""
        return self._rss is not None and resident_bytes() >= self._rss

    def is_due_after(self, jobs: int) -> bool:
        """Count jobs that have ended; return whether no more should follow."""
        if not jobs:
            return False
        self.jobs += jobs
        if self._after is not None and self.jobs >= self._after:
            return True
        return self._rss is not None and resident_bytes() >= self._rss
