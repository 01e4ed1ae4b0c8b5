"""Interrupting the job of one thread, and no other job."""

from __future__ import annotations

from threading import Lock, get_ident

from ...errors import TaskCancelled
from ..base.thread_interrupt import clear_exception, raise_in


class Interruptions:
    """Raises ``TaskCancelled`` in threads, each time in the job that is meant.

    The exception arrives in its thread a moment after it was sent, and the job may have ended by
    then. A thread that leaves a job therefore takes back what is still on its way.
    """

    def __init__(self) -> None:
        #: The thread that runs each job.
        self._threads: dict[int, int] = {}
        #: Jobs to whose threads the exception is being sent, or was sent.
        self._sent: set[int] = set()
        self._lock = Lock()

    def enter(self, job_id: int) -> None:
        """Let the job that the calling thread begins be interrupted."""
        self._threads[job_id] = get_ident()

    def leave(self, job_id: int) -> bool:
        """End what ``enter`` began, after which nothing is raised any more; return whether an
        exception had been sent. To be called again if ``TaskCancelled`` is raised inside."""
        # In this order, and in the other one in interrupt(): one of both sees the other.
        self._threads.pop(job_id, None)
        return bool(self._sent) and self._take_back(job_id)

    def interrupt(self, job_id: int) -> None:
        """Raise ``TaskCancelled`` in the thread that runs the job, if any does, and only once."""
        with self._lock:
            if job_id in self._sent:
                return
            self._sent.add(job_id)
            thread = self._threads.get(job_id)
            if thread is None:
                self._sent.discard(job_id)
            else:
                raise_in(thread, TaskCancelled)

    def _take_back(self, job_id: int) -> bool:
        with self._lock:
            if job_id not in self._sent:
                return False
            self._sent.discard(job_id)
            clear_exception(get_ident())
            return True
