"""The work of a task process: runs the jobs that its worker sends, one at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Event, Thread, Timer, get_ident
from types import FrameType
from typing import Any

from ...configuration import Configuration
from ...dialects import ClaimedJob
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...signals import ProcessLifecycle, send, task_process_started, task_process_stopped
from ..base import diagnosis
from ..base.connections import close_own_connections
from ..base.database import DatabaseClock
from ..base.forking import accept_signals, disown_exit, do_own_exit, flush_output
from ..base.log_context import about_job, named
from ..base.posix_signals import (
    STACKS,
    graceful_signals,
    hangup_signals,
    install,
    leave_alone,
    unclaimed,
)
from ..base.system import set_title
from ..base.thread_roles import THREAD_PREFIX
from .attempt import RunResult
from .error_frames import forget_frames
from .event_loop import new_event_loop
from .executor import Executor, is_coroutine
from .forked_copies import end_daemons, end_if_copy
from .frames import Frames
from .job_contexts import JobContexts
from .recycling import Recycling
from .task_process import FAREWELL
from .wire import read_job, write_outcome

logger = get_logger("steady_queue.worker")

#: Seconds that what a coroutine has left behind may take to end once it is cancelled.
LEFTOVER_TIME = 2.0
#: Larger than any job: the worker holds each of them in its memory already.
LARGEST_JOB = 1 << 40


def serve_tasks(
    connection: socket.socket, *, worker: str, using: str, settings: Configuration.Worker
) -> None:
    """Run the jobs that arrive at ``connection``, then end the process.

    It ends after its job on TERM and INT, when it is to be recycled, and when the worker
    closes the socket. As in a worker, tasks do not run in the main thread, so that this can handle
    signals.
    """

    disown_exit()
    runs: dict[int, str] = {}

    def stop(signum: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RD)

    def log_stacks(signum: int, frame: FrameType | None) -> None:
        diagnosis.log_stacks(runs.copy())

    os.register_at_fork(after_in_child=connection.close)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # QUIT and HUP go to all processes of a terminal; the worker will end this one.
    ignored = dict.fromkeys([signal.SIGQUIT, *hangup_signals()], leave_alone)
    asked = dict.fromkeys(unclaimed(STACKS), log_stacks)
    install({**dict.fromkeys(graceful_signals(), stop), **ignored, **asked})
    accept_signals()
    random.seed()
    set_title("task process", f"of {worker}")
    about = {
        "process_kind": "task_process",
        "process_name": worker,
        "pid": os.getpid(),
        "hostname": socket.gethostname(),
        "metadata": {"queues": list(settings.queues)},
        "using": using,
    }
    send(task_process_started, ProcessLifecycle, **about)
    close_own_connections()  # Of receivers: tasks have a thread of their own.
    server = TaskServer(connection, worker, using, settings, runs)
    work = partial(copy_context().run, server.serve)
    thread = Thread(target=work, name=f"{THREAD_PREFIX}0", daemon=True)
    thread.start()
    server.ended.wait()
    send(task_process_stopped, ProcessLifecycle, **about)
    with suppress(BaseException):
        do_own_exit(partial(os._exit, 0))
        end_daemons()
        logging.shutdown()
        flush_output()
        server.frames.send(FAREWELL)  # Last: the worker does not wait for what follows.
    os._exit(0)


class TaskServer:
    """Receives jobs, runs them, and sends their outcomes. In a thread of its own."""

    def __init__(
        self,
        connection: socket.socket,
        worker: str,
        using: str,
        settings: Configuration.Worker,
        runs: dict[int, str],
    ) -> None:
        """``runs``: kept to what each thread runs, by its id."""
        self.runs = runs
        self.frames = Frames(connection, LARGEST_JOB)
        self.clock = DatabaseClock()
        self.executor = Executor(
            worker, self.clock, fresh_connections=settings.fresh_connections, using=using
        )
        self.recycling = Recycling(settings)
        #: The event loop of the last coroutine, until what that has left on it has ended.
        self._runner: asyncio.Runner | None = None
        #: Set when the process is to end.
        self.ended = Event()

    def serve(self) -> None:
        """Run jobs until no more come."""
        try:
            with suppress(OSError):  # The worker has ended.
                contexts = JobContexts()
                while (job := self.frames.receive()) is not None:
                    context = contexts.new()
                    self.frames.send(context.run(self._run, job))
                    if self._runner is not None:
                        context.run(self._end_leftovers, self._runner, job)
                    context.run(self.executor.tidy)
                    if self.recycling.is_due_after(1):
                        break
            close_own_connections()
        finally:
            self.ended.set()

    def _run(self, job: bytes) -> bytes:
        claim, began = read_job(job)
        self.runs[get_ident()] = named(claim)
        self.clock.set(began)
        self.executor.audience.look_again()
        try:
            result = self._result_of(claim)
        except BaseException as error:
            result = self.executor.broken(claim, error)
        self.runs.clear()
        forget_frames(result.error)
        flush_output()  # The process may be killed before its next job.
        return write_outcome(result.outcome, settled=result.settled)

    def _result_of(self, claim: ClaimedJob) -> RunResult:
        task = self.executor.task_of(claim)
        if not is_coroutine(task):
            return self.executor.run(claim, task)
        # A loop for each job: what it leaves there ends with it, once its outcome is sent.
        self._runner = asyncio.Runner(loop_factory=new_event_loop)
        return self._completed(self.executor.arun(claim, task), self._runner.get_loop(), claim)

    def _end_leftovers(self, runner: asyncio.Runner, job: bytes) -> None:
        """Cancel what a coroutine has left behind; end the process if that does not end."""
        self._runner = None
        watch = Timer(LEFTOVER_TIME, self._leave, [job])
        watch.daemon = True
        loop: Any = runner.get_loop()
        if not loop.is_closed() and (asyncio.all_tasks(loop) or loop._default_executor is not None):
            watch.start()
        try:
            try:
                if not loop.is_closed():
                    loop.run_until_complete(self.executor.atidy())
            finally:
                runner.close()
        except BaseException as error:  # An exit of what the task has left behind.
            self._note_interruption(read_job(job)[0], error)
        watch.cancel()

    def _leave(self, job: bytes) -> None:
        logger.warning(
            "What the coroutine of job %d has left behind does not end: its task process does",
            read_job(job)[0].job_id,
            extra=about_job("worker.leftovers", read_job(job)[0]),
        )
        self.ended.set()

    def _completed(
        self, run: Coroutine[Any, Any, RunResult], loop: asyncio.AbstractEventLoop, job: ClaimedJob
    ) -> RunResult:
        """Run a coroutine to its end, though it may stop the loop, or what it has begun may exit.
        Raises what ends a loop for good."""
        task = loop.create_task(run)
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
                if loop.is_closed():
                    raise
                if not task.done():
                    self._note_interruption(job, error)
        return task.result()

    def _note_interruption(self, claim: ClaimedJob, error: BaseException) -> None:
        end_if_copy(self.executor.pid, error)
        log_internal_error(
            logger,
            "The event loop of job #%d was interrupted",
            claim.job_id,
            error=error,
            extra=about("worker.loop_interrupted"),
        )
