"""Executes claimed jobs: looks up the task, calls it and determines the outcome."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from inspect import iscoroutinefunction

from asgiref.sync import sync_to_async

from ...compat import Task, task_finished, task_started
from ...dialects import ClaimedJob
from ...internal_errors import log_internal_error
from ...logging import OF_TASKS, about, get_logger, running_task
from ...project_code import contained
from ...tasks.copies import rebuilt
from ...tasks.registry import find_task
from ...tasks.task_signals import Audience, asend_task_signal, send_task_signal
from ..base.connections import (
    atidy_connections,
    running_coroutine,
    tidy_connections,
    watch_connections,
)
from ..base.database import DatabaseClock
from ..base.log_context import about_job, running_of
from .attempt import Attempt, RunResult
from .claim_ends import ClaimEnds
from .forked_copies import end_if_copy
from .interruptions import Reason
from .task_transaction import is_transactional, refuse_transaction, run_in_transaction

logger = get_logger("steady_queue.worker")
task_logger = get_logger(OF_TASKS)

#: Most tasks that are cached.
MOST_TASKS = 10_000

#: Cached, because the check takes as long as everything else that is done with a claim.
_is_coroutine = lru_cache(maxsize=1000)(iscoroutinefunction)


def is_coroutine(task: Task) -> bool:
    """Whether the task runs on the event loop."""
    return _is_coroutine(task.func)


class Executor(ClaimEnds):
    """Executes the jobs of one worker. Its threads and its event loop share it."""

    def __init__(
        self,
        worker: str,
        clock: DatabaseClock,
        *,
        fresh_connections: bool = False,
        using: str | None = None,
    ) -> None:
        super().__init__(worker, clock)
        self.pid = os.getpid()
        #: The alias of the database whose jobs it executes; ``None``: that of each job's backend.
        self.using = using
        #: Keeps a job from being interrupted from then on; returns by what it was to be.
        self.end_interruptions: Callable[[int], Reason | None] = lambda job_id: None
        #: Whether a task never gets a connection that another task has used.
        self.fresh_connections = fresh_connections
        #: Who hears of tasks, as of the last claim.
        self.audience = Audience()
        #: Whether the worker is interrupting its tasks: an exception is then no outcome.
        self.breaking_off = False
        self._tasks: dict[tuple[str, str, int, str], Task] = {}
        watch_connections(fresh=fresh_connections)

    def task_of(self, claim: ClaimedJob) -> Task:
        """Return the task of a job as it was enqueued. Raises ``UnregisteredTaskError``."""
        key = (claim.task_path, claim.queue_name, claim.rank, claim.backend_name)
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) > MOST_TASKS:
                self._tasks.clear()
            # Imports the module of the task.
            found = contained(find_task, claim.task_path)
            task = self._tasks[key] = rebuilt(
                found,
                queue_name=claim.queue_name,
                priority=-claim.rank,
                backend=claim.backend_name,
            )
        return task

    @property
    def tells_of_success(self) -> bool:
        """Whether signals or log records tell of a task that has succeeded."""
        return self.audience.hears(task_finished) or task_logger.isEnabledFor(logging.INFO)

    def run(self, claim: ClaimedJob, task: Task) -> RunResult:
        """Run a job in the calling thread. Lets exceptions escape only while breaking off."""
        self._note_begin(claim)
        attempt = self._new_attempt(claim, task)
        try:
            attempt.decode()
            if self.audience.hears(task_started):
                send_task_signal(task_started, type(attempt.backend), attempt.task_result)
            # Most jobs have no metadata.
            if claim.metadata is not None and is_transactional(attempt):
                return self._run_in_transaction(attempt)
            value = attempt.call(self._as_raised)
        except BaseException as error:
            return self._failed(attempt, error)
        else:
            return self._succeeded(attempt, value)

    def tidy(self) -> None:
        """Remove what the job of the calling thread has left on its connections. To be called once
        its outcome is noted: this may ask the database."""
        try:
            tidy_connections(fresh=self.fresh_connections)
        except Exception as error:  # It would end a thread that other jobs need.
            log_internal_error(
                logger,
                "Connections were not tidied up",
                error=error,
                extra=about("worker.connection_broken"),
            )

    def _run_in_transaction(self, attempt: Attempt) -> RunResult:
        """Run a task and settle its job in one transaction."""

        def work() -> RunResult:
            try:
                value = attempt.call(self._as_raised)
            except BaseException as error:
                # Before a rollback on the connection that it shares.
                end_if_copy(self.pid, error)
                raise
            return self._succeeded(attempt, value)

        def seal() -> None:
            if reason := self.end_interruptions(attempt.claim.job_id):
                raise reason

        return run_in_transaction(attempt, work, seal)

    async def aprepared(self, claim: ClaimedJob, task: Task) -> Attempt:
        """Return an attempt that has looked up what its coroutine cannot await."""
        attempt = self._new_attempt(claim, task)
        with suppress(Exception):  # It looks again when it runs, and fails then.
            await self._aload(attempt)
        return attempt

    async def arun(
        self, claim: ClaimedJob, task: Task, attempt: Attempt | None = None
    ) -> RunResult:
        """Run a job on the running event loop. Async version of :meth:`run`. ``attempt``: see
        :meth:`aprepared`."""
        self._note_begin(claim)
        attempt = attempt or self._new_attempt(claim, task)
        with running_coroutine(running_of(claim)):
            return await self._arun(attempt)

    async def atidy(self) -> None:
        """Async version of :meth:`tidy`, which waits for the thread that runs coroutines'
        queries."""
        await atidy_connections(fresh=self.fresh_connections)

    async def _arun(self, attempt: Attempt) -> RunResult:
        try:
            if attempt.needs_models:
                await sync_to_async(attempt.decode)()
            else:
                attempt.decode()
            if self.audience.hears(task_started):
                await asend_task_signal(task_started, type(attempt.backend), attempt.task_result)
            if attempt.claim.metadata is not None:
                refuse_transaction(attempt)
            await self._aload(attempt)
            value = await attempt.acall(self._as_raised)
        except BaseException as error:
            return self._failed(attempt, error)
        else:
            return self._succeeded(attempt, value)

    async def _aload(self, attempt: Attempt) -> None:
        if attempt.task.takes_context and attempt.notes.awaits_look:
            await sync_to_async(attempt.notes.load)()

    def _note_begin(self, claim: ClaimedJob) -> None:
        running_task.set(running_of(claim))
        if task_logger.isEnabledFor(logging.DEBUG):
            task_logger.debug(
                "Task %s #%d starts",
                claim.task_path,
                claim.job_id,
                extra=about_job("task.started", claim),
            )

    def _new_attempt(self, claim: ClaimedJob, task: Task) -> Attempt:
        return Attempt(
            claim,
            task,
            self.backend_of(claim.backend_name),
            self.worker,
            self.clock.now(),
            self.using,
            self.clock.now,
        )

    def _succeeded(self, attempt: Attempt, value: object) -> RunResult:
        end_if_copy(self.pid)
        return attempt.succeeded(value, self.clock.now, is_told=self.tells_of_success)

    def _failed(self, attempt: Attempt, error: BaseException) -> RunResult:
        end_if_copy(self.pid, error)
        return attempt.raised(self._as_raised(attempt.claim, error), self.clock.now)

    def _as_raised(self, claim: ClaimedJob, error: BaseException) -> BaseException:
        """Return the error of an attempt that ``error`` has ended; raise it while breaking off."""
        if self.breaking_off:
            raise error
        return self.ending_of(claim, error)
