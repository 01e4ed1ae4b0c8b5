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
        self._waiting: SimpleQueue[Work] = SimpleQueue()
        self._context = copy_context()
        for number in range(size):
            Thread(target=self._work, name=f"steady-queue-{number}", daemon=True).start()

    def submit(self, work: list[Work]) -> None:
        """Queue jobs for the next idle threads."""
        for each in work:
            self._waiting.put(each)

    @property
    def waiting(self) -> int:
        """How many jobs no thread has begun."""
        return self._waiting.qsize()

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that no thread has begun."""
        withdrawn: list[ClaimedJob] = []
        while True:
            try:
                withdrawn.append(self._waiting.get_nowait()[0])
            except Empty:
                return withdrawn

    def _work(self) -> None:
        while True:
            work = self._waiting.get()
            # A context of its own keeps one task's context variables from the next.
            context: Context = self._context.copy()
            context.run(self._run, *work)
