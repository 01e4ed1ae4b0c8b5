"""Event loop of a worker, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing, suppress
from contextvars import Context
from threading import Thread
from typing import Any

from ...compat import Task
from ...dialects import ClaimedJob
from ...internal_errors import log_internal_error
from ...logging import about, get_logger, running_task
from ..base.thread_interrupt import TaskInterrupted, interrupt_task
from .job_contexts import JobContexts
from .thread_pool import Work

logger = get_logger("steady_queue.worker")

#: Seconds that jobs may start one after another before those that wait go on.
TURN = 0.001


class EventLoop:
    """Runs up to ``size`` coroutine tasks at once, in order; jobs that have not started can be
    withdrawn.

    Its thread starts with the first job.
    """

    def __init__(
        self, size: int, run: Callable[[ClaimedJob, Task], Coroutine[Any, Any, None]]
    ) -> None:
        self.size, self._run = size, run
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Filled by the worker's main thread, emptied by either thread.
        self._waiting: deque[Work] = deque()
        #: The running asyncio tasks, each with its job and, until its first step, its coroutine.
        self._running: dict[asyncio.Task[None], tuple[Work, Coroutine[Any, Any, None] | None]] = {}
        #: Those that have given their places to others.
        self._leaving: set[asyncio.Task[None]] = set()
        self._contexts = JobContexts()
        self._thread: Thread | None = None
        self._closing = self._cancelled = False
        #: Jobs for whose sake the loop was asked whether it goes on, and whether it has answered.
        self._asked: dict[int, bool] = {}
        #: The job that blocks the loop, although its time is over.
        self.blocked_by: int | None = None
        #: Whether the loop could not be started: its jobs have to run elsewhere.
        self.is_crippled = False
        #: Whether a task is in its first step: so far it has left no time to others.
        self.is_starting = False

    def submit(self, work: list[Work]) -> None:
        """Queue jobs, and start as many as may run at once."""
        self._waiting.extend(work)
        if self._loop is None and not self.is_crippled:
            self._open()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._start)

    def _open(self) -> None:
        """Start the loop, unless the system has no more files or threads to give."""
        with ExitStack() as opened:
            try:
                loop = opened.enter_context(closing(new_event_loop()))
                self._thread = Thread(
                    target=self._serve, args=[loop], name="steady-queue-loop", daemon=True
                )
                self._thread.start()
            except Exception as error:
                self.is_crippled = True
                log_internal_error(
                    logger,
                    "The worker ends, and will be replaced: no event loop can be started: %s",
                    error,
                    error=error,
                    extra=about("worker.crippled"),
                )
            else:
                self._loop = loop
                opened.pop_all()

    def submit_next(self, work: Work) -> None:
        """Queue a job that starts as soon as the running one, which calls this, has ended."""
        self._waiting.appendleft(work)

    def leave(self) -> None:
        """Give the place of the running job, which calls this, to another one: all that it still
        does is to tidy up."""
        current = asyncio.current_task()
        assert self._loop is not None
        assert current is not None
        self._running.pop(current, None)
        self._leaving.add(current)
        self._loop.call_soon(self._start)

    @property
    def waiting(self) -> int:
        """Number of jobs that have not started."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return len(self._running)

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that have not started."""
        withdrawn: list[ClaimedJob] = []
        with suppress(IndexError):
            while True:
                withdrawn.append(self._waiting.popleft()[0])
        return withdrawn

    def interrupt(self) -> None:
        """Cancel the running tasks; if called again, interrupt a task that blocks the loop."""
        if self._loop is None or self._thread is None or not self._running:
            return
        if self._cancelled:
            interrupt_task(self._thread)
        else:
            self._cancelled = True
            self._loop.call_soon_threadsafe(self._cancel)

    def interrupt_job(self, job_id: int) -> None:
        """Cancel the task of a job, if it runs here."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop has ended already.
                self._loop.call_soon_threadsafe(self._cancel_job, job_id)

    @property
    def jobs(self) -> set[int]:
        """The jobs whose tasks run here."""
        return {claim.job_id for (claim, _), _ in list(self._running.values())}

    @property
    def coroutines(self) -> dict[int, asyncio.Task[None]]:
        """The asyncio tasks that run here, by job."""
        return {claim.job_id: task for task, ((claim, _), _) in self._running.copy().items()}

    def is_to_blame(self, job_id: int) -> bool:
        """Whether a job that should have ended runs on by its own doing, and not because another
        one blocks the loop. Not known when it is first asked: to be asked again, a moment later.
        """
        if self._loop is None or job_id not in self.jobs:
            return True
        goes_on = self._asked.pop(job_id, None)
        if goes_on is None:
            self._asked[job_id] = False
            with suppress(RuntimeError):  # The loop has ended already.
                self._loop.call_soon_threadsafe(self._answer, job_id)
            return False
        if goes_on:
            return True
        blocking = self._current_job(self._loop)
        if blocking not in (None, job_id):
            return False
        self.blocked_by = job_id
        return True

    def _answer(self, job_id: int) -> None:
        if job_id in self._asked:
            self._asked[job_id] = True
        if self.blocked_by == job_id:
            self.blocked_by = None

    def _current_job(self, loop: asyncio.AbstractEventLoop) -> int | None:
        """Return the job whose code the loop runs now, or ``None`` if that is unknown."""
        current: Any = asyncio.current_task(loop)
        if current in self._running:
            return self._running[current][0][0].job_id
        if current is not None and hasattr(current, "get_context"):  # Python 3.12
            found = current.get_context().get(running_task)
            return None if found is None else int(found.task_id)
        return None

    def close(self) -> None:
        """End the thread once no task is running."""
        self._closing = True
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop has ended already.
                self._loop.call_soon_threadsafe(self._end_if_idle)

    def _cancel(self) -> None:
        for running in list(self._running):
            running.cancel()

    def _cancel_job(self, job_id: int) -> None:
        for running, ((claim, _), _) in list(self._running.items()):
            if claim.job_id == job_id:
                running.cancel()

    def _end_if_idle(self) -> None:
        assert self._loop is not None
        if self._closing and self._is_idle and not self._waiting:
            self._loop.stop()

    @property
    def _is_idle(self) -> bool:
        return not self._running and not self._leaving

    def _start(self) -> None:
        assert self._loop is not None
        end = time.monotonic() + TURN
        with suppress(IndexError):
            while len(self._running) < self.size:
                if time.monotonic() > end:
                    self._loop.call_soon(self._start)
                    return
                self._start_one(self._loop, self._waiting.popleft())
        self._end_if_idle()

    def _start_one(self, loop: asyncio.AbstractEventLoop, work: Work) -> None:
        coroutine = self._run(*work)
        self.is_starting = True
        try:
            running = _new_task(loop, self._execute(work, coroutine), self._contexts.new())
        finally:
            self.is_starting = False
        if running.done():
            self._forget(running)
        else:
            # The loop itself keeps only weak references to its tasks.
            if running not in self._leaving:
                self._running.setdefault(running, (work, coroutine))
            running.add_done_callback(self._ended)

    async def _execute(self, work: Work, coroutine: Coroutine[Any, Any, None]) -> None:
        current = asyncio.current_task()
        assert current is not None
        self._running[current] = work, None
        await coroutine

    def _ended(self, running: asyncio.Task[None]) -> None:
        self._forget(running)
        self._start()

    def _forget(self, running: asyncio.Task[None]) -> None:
        if running in self._leaving:
            self._leaving.discard(running)
            return
        work, coroutine = self._running.pop(running)
        if coroutine is not None:
            # Another task cancelled this one (or all tasks of the loop) before its first step.
            coroutine.close()
            self._waiting.appendleft(work)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not (self._closing and self._is_idle):
            try:
                loop.run_forever()
            except TaskInterrupted:
                continue
            except BaseException:
                # A task spawned by a task raised SystemExit: the others keep running.
                log_internal_error(
                    logger,
                    "The event loop was interrupted; it continues",
                    extra=about("worker.loop_interrupted"),
                )
        loop.close()


def _new_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None], context: Context
) -> asyncio.Task[None]:
    """Return a task, which from Python 3.12 on has begun: many coroutines never wait, and end
    before the loop has anything to do with them."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(coroutine, loop=loop, context=context, eager_start=True)
    return loop.create_task(coroutine, context=context)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, even if the log cannot be written."""
    # asyncio logs the creation of a loop, which would fail if the log cannot be written.
    log = logging.getLogger("asyncio")
    former, log.disabled = log.disabled, True
    try:
        return asyncio.new_event_loop()
    finally:
        log.disabled = former
