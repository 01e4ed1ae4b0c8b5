"""Thread pool of a worker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread, current_thread

from ...compat import Task
from ...dialects import ClaimedJob
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..base.connections import close_own_connections
from ..base.thread_interrupt import TaskInterrupted, interrupt_task
from .interruptions import Interruptions, Reason
from .job_contexts import JobContexts

logger = get_logger("steady_queue.worker")

#: Seconds after which jobs that follow each other let others go first. They mostly take less.
TURN = 0.05

Work = tuple[ClaimedJob, Task]


class ThreadPool:
    """Runs jobs in ``size`` threads, in order; jobs that have not started can be withdrawn.

    ``run`` returns the job that the same thread runs next, or ``None`` for any.
    """

    def __init__(self, size: int, run: Callable[[ClaimedJob, Task], Work | None]) -> None:
        self._run = run
        self._waiting: SimpleQueue[Work | None] = SimpleQueue()
        self._contexts = JobContexts()
        #: What interrupts a single job; ``run`` says when it may.
        self.interruptions = Interruptions()
        #: Threads that are running a task.
        self._busy: set[Thread] = set()
        self._threads = [
            Thread(target=self._work, name=f"steady-queue-{number}", daemon=True)
            for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: list[Work]) -> None:
        """Queue jobs for the next idle threads."""
        for each in work:
            self._waiting.put(each)

    @property
    def waiting(self) -> int:
        """Number of jobs that have not started."""
        return self._waiting.qsize()

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return len(self._busy)

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that have not started."""
        withdrawn: list[ClaimedJob] = []
        while True:
            try:
                work = self._waiting.get_nowait()
            except Empty:
                return withdrawn
            if work is not None:
                withdrawn.append(work[0])

    def interrupt(self) -> None:
        """Interrupt the running tasks."""
        for thread in list(self._busy):
            interrupt_task(thread)

    def interrupt_job(self, job_id: int, reason: Reason) -> None:
        """Raise ``reason`` in the task of a job, if it runs here."""
        self.interruptions.interrupt(job_id, reason)

    def close(self) -> None:
        """End each thread once the queued jobs are done."""
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        taken: deque[Work | None] = deque()
        while True:
            try:
                self._serve(taken)
                break
            except TaskInterrupted:  # It has arrived too late, and the pool is closing anyway.
                break
            except BaseException as error:
                log_internal_error(
                    logger,
                    "A thread of the worker was interrupted between two jobs; it continues",
                    error=error,
                    extra=about("worker.thread_interrupted"),
                )
            finally:
                self._busy.discard(current_thread())
        close_own_connections()

    def _serve(self, taken: deque[Work | None]) -> None:
        """Run jobs until the pool is closed. What is ``taken`` and has not begun stays there if an
        exception arrives from outside."""
        # In one call, for a thread that waits here finds an exception as soon as a call returns:
        # its value would be lost.
        take, thread = iter(self._waiting.get, taken), current_thread()
        while True:
            if not taken:
                taken.extend(islice(take, 1))
            if taken[0] is None:
                return
            self._busy.add(thread)
            work = taken.popleft()
            assert work is not None
            following = self._run_one(*work)
            if following is not None:
                self._run_chain(following)
            self._busy.discard(thread)

    def _run_one(self, claim: ClaimedJob, task: Task) -> Work | None:
        return self._contexts.new().run(self._run, claim, task)

    def _run_chain(self, work: Work) -> None:
        """Run jobs that follow each other, until it is others' turn."""
        end = time.monotonic() + TURN
        following: Work | None = work
        while following is not None and time.monotonic() < end:
            following = self._run_one(*following)
        if following is not None:
            self._waiting.put(following)
