"""A worker's threads."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from threading import Thread

from ..compat import Task
from ..dialects import ClaimedJob

Work = tuple[ClaimedJob, Task]


class ThreadPool:
    """Hands jobs to threads, in order; what no thread has begun can be withdrawn."""

    def __init__(self, size: int, run: Callable[[ClaimedJob, Task], None]) -> None:
        self._run = run
        self._waiting: SimpleQueue[Work | None] = SimpleQueue()
        self._context = copy_context()
        self._threads = [
            Thread(target=self._work, name=f"steady-queue-{number}", daemon=True)
            for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, claim: ClaimedJob, task: Task) -> None:
        """Queue a job for the next idle thread."""
        self._waiting.put((claim, task))

    @property
    def waiting(self) -> int:
        """How many jobs no thread has begun."""
        return self._waiting.qsize()

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that no thread has begun."""
        withdrawn: list[ClaimedJob] = []
        while True:
            try:
                work = self._waiting.get_nowait()
            except Empty:
                return withdrawn
            if work is not None:
                withdrawn.append(work[0])

    def stop(self) -> None:
        """Have each thread end after the job that it runs."""
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            # A context of its own keeps one task's context variables from the next.
            context: Context = self._context.copy()
            context.run(self._run, *work)
