"""Interrupting the job of one thread, and no other job."""

from __future__ import annotations

import time
from threading import Lock, Thread, get_ident
from typing import Any

from django.db import connections

from ...errors import TaskCancelled
from ..base.connections import connections_of
from ..base.thread_interrupt import clear_exception, is_within, raise_in

#: Code in which nothing is raised: a driver that is interrupted between a statement and its answer
#: may wait for ever.
DATABASE = "django.db"
#: Seconds between two attempts to find a thread outside of it.
PAUSE = 0.005


class Interruptions:
    """Raises ``TaskCancelled`` in threads, each time in the job that is meant.

    The exception arrives in its thread a moment after it was sent, and the job may have ended by
    then. A thread that leaves a job therefore takes back what is still on its way.
    """

    def __init__(self) -> None:
        #: The thread that runs each job.
        self._threads: dict[int, int] = {}
        #: Jobs to whose threads the exception was sent, or is to be.
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
        """Raise ``TaskCancelled`` in the thread that runs the job, if any does, and only once.

        While it is at work in Django's database code, it goes on to its next statement, or until it
        is found elsewhere.
        """
        with self._lock:
            if job_id in self._sent:
                return
            self._sent.add(job_id)
            thread = self._threads.get(job_id)
            if thread is None:
                self._sent.discard(job_id)
                return
            if not is_within(thread, DATABASE):
                raise_in(thread, TaskCancelled)
                return
            refusal = Refusal()
            for connection in connections_of(thread):
                connection.execute_wrappers.append(refusal)
        Thread(target=self._pursue, args=[job_id, thread, refusal], daemon=True).start()

    def _pursue(self, job_id: int, thread: int, refusal: Refusal) -> None:
        while True:
            time.sleep(PAUSE)
            with self._lock:
                if job_id not in self._sent or refusal.raised:
                    return  # The job has ended, or is about to.
                if not is_within(thread, DATABASE):
                    raise_in(thread, TaskCancelled)
                    return

    def _take_back(self, job_id: int) -> bool:
        with self._lock:
            if job_id not in self._sent:
                return False
            self._sent.discard(job_id)
            clear_exception(get_ident())
            for connection in connections.all(initialized_only=True):
                wrappers = connection.execute_wrappers
                wrappers[:] = [each for each in wrappers if not isinstance(each, Refusal)]
            return True


class Refusal:
    """Raises ``TaskCancelled`` in place of the next statement of a thread."""

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        # Once: what follows may be a rollback.
        if self.raised:
            return execute(sql, params, many, context)
        self.raised = True
        raise TaskCancelled
