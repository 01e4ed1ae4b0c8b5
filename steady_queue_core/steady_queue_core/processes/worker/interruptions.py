"""Interrupting the job of one thread, and no other job."""

from __future__ import annotations

import time
from threading import Lock, Thread, get_ident
from typing import Any

from django.db import connections

from ...errors import TaskCancelled, TaskTimeout
from ..base.connections import connections_of
from ..base.execute_wrappers import add_wrapper
from ..base.thread_interrupt import LOCKING, clear_exception, is_within, raise_in
from . import time_outs

#: Code in which nothing is raised: a driver that is interrupted between a statement and its answer
#: may wait for ever, and so may everybody for a lock that is not given back.
PROTECTED = ("django.db", *LOCKING, time_outs.__name__)
#: Seconds between two attempts to find a thread outside of it.
PAUSE = 0.005


#: What is raised in the thread of a job.
Reason = type[TaskCancelled] | type[TaskTimeout]


class Interruptions:
    """Raises an exception in threads, each time in the job that is meant.

    The exception arrives in its thread a moment after it was sent, and the job may have ended by
    then. A thread that leaves a job therefore takes back what is still on its way.
    """

    def __init__(self) -> None:
        #: The thread that runs each job.
        self._threads: dict[int, int] = {}
        #: Jobs to whose threads an exception was sent, or is to be.
        self._sent: dict[int, Reason] = {}
        self._lock = Lock()

    def enter(self, job_id: int) -> None:
        """Let the job that the calling thread begins be interrupted."""
        self._threads[job_id] = get_ident()

    def is_running(self, job_id: int) -> bool:
        """Whether a thread runs the job."""
        return job_id in self._threads

    @property
    def threads(self) -> dict[int, int]:
        """The threads that run jobs, by job."""
        return self._threads.copy()

    def leave(self, job_id: int) -> Reason | None:
        """End what ``enter`` began, after which nothing is raised any more; return what had been
        sent. To be called again if that is raised inside."""
        # In this order, and in the other one in interrupt(): one of both sees the other.
        self._threads.pop(job_id, None)
        return self._take_back(job_id) if self._sent else None

    def interrupt(self, job_id: int, reason: Reason = TaskCancelled) -> None:
        """Raise ``reason`` in the thread that runs the job, if any does, and only once: what is
        sent first counts.

        While it is at work in code that must not be interrupted, it goes on to its next statement,
        or until it is found elsewhere.
        """
        with self._lock:
            if job_id in self._sent:
                return
            self._sent[job_id] = reason
            thread = self._threads.get(job_id)
            if thread is None:
                del self._sent[job_id]
                return
            if not is_within(thread, *PROTECTED):
                raise_in(thread, reason)
                return
            refusal = Refusal(reason)
            for connection in connections_of(thread):
                add_wrapper(connection, refusal)
        Thread(target=self._pursue, args=[job_id, thread, refusal], daemon=True).start()

    def _pursue(self, job_id: int, thread: int, refusal: Refusal) -> None:
        while True:
            time.sleep(PAUSE)
            with self._lock:
                if job_id not in self._sent or refusal.raised:
                    return  # The job has ended, or is about to.
                if not is_within(thread, *PROTECTED):
                    raise_in(thread, refusal.reason)
                    return

    def _take_back(self, job_id: int) -> Reason | None:
        with self._lock:
            reason = self._sent.pop(job_id, None)
            if reason is None:
                return None
            clear_exception(get_ident())
            for connection in connections.all(initialized_only=True):
                wrappers = connection.execute_wrappers
                wrappers[:] = [each for each in wrappers if not isinstance(each, Refusal)]
            return reason


class Refusal:
    """Raises ``reason`` in place of the next statement of a thread."""

    def __init__(self, reason: Reason) -> None:
        self.reason, self.raised = reason, False

    def __call__(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        # Once: what follows may be a rollback.
        if self.raised:
            return execute(sql, params, many, context)
        self.raised = True
        raise self.reason
