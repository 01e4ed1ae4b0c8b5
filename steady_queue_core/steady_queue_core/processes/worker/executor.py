"""Runs claimed jobs: finds their task, calls it, and makes the outcome of what it does."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from functools import cache, lru_cache
from inspect import iscoroutinefunction

from asgiref.sync import sync_to_async

from ...compat import Task, task_started
from ...configured_backends import own_backend
from ...dialects import ClaimedJob, Ending
from ...errors import UnregisteredTaskError
from ...logging import OF_TASKS, get_logger, running_task
from ...tasks.definition import find_task, rebuilt
from ...tasks.results import asend_task_signal, send_task_signal, task_of
from ..base.clock import DatabaseClock
from ..base.connections import (
    atidy_connections,
    running_coroutine,
    tidy_connections,
    watch_connections,
)
from ..base.log_context import about_job, running_of
from . import outcomes, unknown_tasks
from .attempt import Attempt, Done
from .forked_copies import end_if_copy

logger = get_logger("steady_queue.worker")
task_logger = get_logger(OF_TASKS)

#: Most paths of unknown tasks that are remembered.
MOST_UNKNOWN = 1000

#: It takes as long as the rest of what is done with a claim.
_is_coroutine = lru_cache(maxsize=1000)(iscoroutinefunction)


def is_coroutine(task: Task) -> bool:
    """Whether the task runs on the event loop."""
    return _is_coroutine(task.func)


class Executor:
    """Executes jobs on behalf of one worker. Used by its threads and its event loop at once."""

    def __init__(
        self, worker: str, clock: DatabaseClock, *, fresh_connections: bool = False
    ) -> None:
        self.worker, self.clock, self.pid = worker, clock, os.getpid()
        #: Whether no task gets a connection that another has used.
        self.fresh_connections = fresh_connections
        self._backend_of = cache(own_backend)
        #: Whether what tasks raise now is our own doing, and no outcome.
        self.breaking_off = False
        self._tasks: dict[tuple[str, str, int, str], Task] = {}
        #: Paths of tasks that are not known here, and were told of.
        self._unknown: set[str] = set()
        watch_connections()

    def task_of(self, claim: ClaimedJob) -> Task:
        """Return the task of a job as it was enqueued. Raises ``UnregisteredTaskError``."""
        key = (claim.task_path, claim.queue_name, claim.rank, claim.backend_name)
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) > 10_000:
                self._tasks.clear()
            task = self._tasks[key] = rebuilt(
                find_task(claim.task_path),
                queue_name=claim.queue_name,
                priority=-claim.rank,
                backend=claim.backend_name,
            )
        return task

    def refuse(self, claim: ClaimedJob, error: UnregisteredTaskError) -> Done:
        """Return the outcome of a job whose task is not known here: it is left to other workers,
        or the attempt has failed."""
        try:
            backend, present = self._backend_of(claim.backend_name), self.clock.now()
            patience = backend.settings.unknown_task_patience
            postponed = unknown_tasks.put_off(claim, error, present, patience)
            if postponed is not None:
                self._tell_unknown(claim, error, patience)
                return Done(postponed)
            task = task_of(claim.task_path, claim.backend_name, claim.queue_name, claim.rank)
            done = Attempt(claim, task, backend, self.worker, present).failed(error, present)
        except Exception as problem:
            return self.broken(claim, problem)
        if done.outcome.ending is Ending.FAILED:
            logger.error(
                "Job %d failed: %s",
                claim.job_id,
                error,
                extra=about_job("task.refused", claim, error_type=type(error).__name__),
            )
        return done

    def _tell_unknown(
        self, claim: ClaimedJob, error: UnregisteredTaskError, patience: timedelta
    ) -> None:
        """Say once for each task that its jobs are left to others."""
        if claim.task_path in self._unknown:
            return
        if len(self._unknown) > MOST_UNKNOWN:
            self._unknown.clear()
        self._unknown.add(claim.task_path)
        logger.warning(
            "Job %d is left to other workers, as others of this task, for up to %s: %s",
            claim.job_id,
            patience,
            error,
            extra=about_job("task.unknown", claim, error_type=type(error).__name__),
        )

    def broken(self, claim: ClaimedJob, error: BaseException) -> Done:
        """Return the outcome of a job whose row made our own code, or the database, fail."""
        logger.error(
            "Job %d could not be run",
            claim.job_id,
            exc_info=error,
            extra=about_job("task.broken", claim, error_type=type(error).__name__),
        )
        return Done(outcomes.unreadable(claim, self.worker, self.clock.now(), error))

    def run(self, claim: ClaimedJob, task: Task) -> Done:
        """Run a job in the calling thread. Raises what it raises while it is broken off."""
        attempt = self._begin(claim, task)
        try:
            attempt.decode()
            send_task_signal(task_started, type(attempt.backend), attempt.result)
            value = task.call(*attempt.positional(), **attempt.result.kwargs)
        except BaseException as error:
            end_if_copy(self.pid, error)
            if self.breaking_off:
                raise
            return attempt.failed(error, self.clock.now())
        else:
            end_if_copy(self.pid)
            return attempt.succeeded(value, self.clock.now())
        finally:
            tidy_connections(fresh=self.fresh_connections)

    async def arun(self, claim: ClaimedJob, task: Task) -> Done:
        """Run a job on the running event loop. Raises as ``run`` does."""
        attempt = self._begin(claim, task)
        with running_coroutine(running_of(claim)):
            done = await self._arun(attempt, task)
        await atidy_connections(fresh=self.fresh_connections)
        return done

    async def _arun(self, attempt: Attempt, task: Task) -> Done:
        try:
            if attempt.needs_models:
                await sync_to_async(attempt.decode)()
            else:
                attempt.decode()
            await asend_task_signal(task_started, type(attempt.backend), attempt.result)
            value = await task.acall(*attempt.positional(), **attempt.result.kwargs)
        except BaseException as error:
            end_if_copy(self.pid, error)
            if self.breaking_off:
                raise
            return attempt.failed(error, self.clock.now())
        else:
            end_if_copy(self.pid)
            return attempt.succeeded(value, self.clock.now())

    def _begin(self, claim: ClaimedJob, task: Task) -> Attempt:
        running_task.set(running_of(claim))
        if task_logger.isEnabledFor(logging.DEBUG):
            task_logger.debug(
                "Task %s #%d starts",
                claim.task_path,
                claim.job_id,
                extra=about_job("task.started", claim),
            )
        return Attempt(
            claim, task, self._backend_of(claim.backend_name), self.worker, self.clock.now()
        )
