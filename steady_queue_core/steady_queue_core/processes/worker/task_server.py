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
from threading import Thread, get_ident
from types import FrameType
from typing import Any

from ...compat import Task
from ...configuration import Configuration
from ...dialects import ClaimedJob
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...signals import ProcessLifecycle, send, task_process_started, task_process_stopped
from ..base import diagnosis
from ..base.connections import THREAD_PREFIX, close_own_connections
from ..base.database import DatabaseClock
from ..base.forking import accept_signals, flush_output
from ..base.log_context import named
from ..base.posix_signals import (
    STACKS,
    graceful_signals,
    hangup_signals,
    install,
    leave_alone,
    unclaimed,
)
from ..base.system import set_title
from .attempt import RunResult
from .event_loop import new_event_loop
from .executor import Executor, is_coroutine
from .forked_copies import end_daemons, end_if_copy
from .frames import Frames
from .recycling import Recycling
from .task_process import FAREWELL
from .wire import read_job, write_outcome

logger = get_logger("steady_queue.worker")

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
    thread.join()
    send(task_process_stopped, ProcessLifecycle, **about)
    with suppress(BaseException):
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

    def serve(self) -> None:
        """Run jobs until no more come."""
        with suppress(OSError):  # The worker has ended.
            while (job := self.frames.receive()) is not None:
                # A copy for each job keeps one task's context variables from the next.
                context = copy_context()
                self.frames.send(context.run(self._run, job))
                context.run(self.executor.tidy)
                if self.recycling.is_due_after(1):
                    break
        close_own_connections()

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
        return write_outcome(result.outcome, settled=result.settled)

    def _result_of(self, claim: ClaimedJob) -> RunResult:
        task = self.executor.task_of(claim)
        if not is_coroutine(task):
            return self.executor.run(claim, task)
        run = self._run_coroutine(claim, task)
        results: list[RunResult] = []
        try:
            # A loop for each job: what a task leaves on it ends with the task.
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                results.append(self._completed(run, runner.get_loop(), claim))
        except BaseException as error:
            if not results:
                raise
            self._note_interruption(claim, error)  # By an exit of what the task has left behind.
        return results[0]

    async def _run_coroutine(self, claim: ClaimedJob, task: Task) -> RunResult:
        result = await self.executor.arun(claim, task)
        await self.executor.atidy()
        return result

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
