"""When a process that runs tasks is used up, and another one has to take its place."""

from __future__ import annotations

from collections.abc import Collection

from ...configuration import Configuration
from ...logging import about, get_logger
from ..base.context import ProcessContext
from ..base.system import resident_bytes

logger = get_logger("steady_queue.worker")


class Recycling:
    """Counts the jobs of a process and looks at its memory."""

    def __init__(self, settings: Configuration.Worker) -> None:
        self._after, self._rss = settings.recycle_after, settings.recycle_rss
        #: Jobs that have ended in this process.
        self.jobs = 0

    def look_at_beginning(self) -> None:
        """Warn if the process takes too much memory before it has run anything."""
        if self._rss is not None and resident_bytes() >= self._rss:
            logger.warning(
                "recycle_rss is less than what a new process takes: it is replaced again and again",
                extra=about("worker.recycle_rss_low"),
            )

    def is_due_after(self, jobs: int) -> bool:
        """Count jobs that have ended; return whether no more should follow."""
        if not jobs:
            return False
        self.jobs += jobs
        if self._after is not None and self.jobs >= self._after:
            return True
        return self._rss is not None and resident_bytes() >= self._rss


def recycle(context: ProcessContext, jobs: int) -> None:
    """Ask, once, for a successor of a worker that has run so many jobs, and goes on until that is
    ready."""
    if not context.wants_successor:
        logger.info(
            "%s has run %d jobs and is to be recycled",
            context.name,
            jobs,
            extra=about("worker.recycled", jobs=jobs),
        )
        context.ask_for_successor()


def replace_stuck(context: ProcessContext, stuck: Collection[int]) -> None:
    """Ask for a successor because of tasks that do not end, of these jobs."""
    logger.error(
        "%s is to be replaced: it has tasks that did not end when they were told to, of the "
        "jobs %s",
        context.name,
        ", ".join(map(str, sorted(stuck))),
        extra=about("worker.stuck", jobs=len(stuck)),
    )
    context.ask_for_successor()
