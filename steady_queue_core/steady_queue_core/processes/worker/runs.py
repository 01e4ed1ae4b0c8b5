"""Runs: from the start of a job to its result, in a worker's threads and on its event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from typing import NamedTuple, Protocol

from ...compat import Task
from ...configuration import Configuration
from ...dialects import ClaimedJob, Ending
from ...errors import TaskCancelled, TaskTimeout
from ...features.time_limits.options import TimeLimit
from ...logging import get_logger
from ...tasks import cancellation
from ...tasks.cancellation import is_requested
from ..base.connections import close_own_connections, has_to_atidy
from ..base.context import ProcessContext
from ..base.log_context import about_job
from ..base.registration import ProcessRegistration
from . import outcomes
from .attempt import RunResult
from .error_frames import keep_frames
from .event_loop import EventLoop
from .executor import Executor, is_coroutine
from .followers import Followers
from .process_executor import ProcessExecutor
from .thread_pool import ThreadPool, Work
from .time_outs import TimeOuts

logger = get_logger("steady_queue.worker")


class StartGate(Protocol):
    """Says of jobs whether they may start at this moment. Any thread."""

    def asks_for(self, claim: ClaimedJob) -> bool:
        """Whether a job has asked for its start, which is good for a moment alone."""

    def may_start(self, claim: ClaimedJob) -> bool:
        """Whether a job may start now; else it asks again."""


class Open:
    """The gate of jobs that need not ask."""

    def asks_for(self, claim: ClaimedJob) -> bool:
        return False

    def may_start(self, claim: ClaimedJob) -> bool:
        return True


class Ended(NamedTuple):
    """A result on its way to the main thread."""

    result: RunResult
    on_loop: bool
    seconds: float


class Runs:
    """Runs jobs in the threads of a worker, or its task processes, and on its event loop."""

    def __init__(
        self,
        context: ProcessContext,
        settings: Configuration.Worker,
        executor: Executor,
        processes: ProcessExecutor | None = None,
        gate: StartGate | None = None,
    ) -> None:
        self.context, self.executor, self._gate = context, executor, gate or Open()
        #: What runs a job in a thread of the pool.
        self._execute = executor.run if processes is None else processes.run
        #: Whether a task runs on the event loop: none does where task processes run all.
        self.runs_on_loop = is_coroutine if processes is None else _never
        self.followers = Followers(self.runs_on_loop)
        self.event_loop = EventLoop(settings.coroutines, self._begin)
        self.pool = ThreadPool(settings.threads, self._run)
        self._interruptions = self.pool.interruptions
        if processes is None:
            executor.end_interruptions = self.pool.interruptions.leave
        self.time_outs = TimeOuts(self._tell_to_end, self._give_up, _report_time_out)
        executor.exceeded_limit = self.time_outs.expired
        #: What interrupts a job that runs in a thread, or in the process of that thread.
        self._interrupt_job = (processes or self.pool).interrupt_job
        self.registration: ProcessRegistration
        self.finished: deque[Ended] = deque()

    @property
    def has_results(self) -> bool:
        """Whether results are waiting to be collected."""
        return bool(self.finished)

    def cancel(self, claim: ClaimedJob) -> None:
        """Interrupt the task of a job; one that has not started does not start. A task that does
        not end is given up as after a time-out."""
        # In this order: a job that starts meanwhile sees the request, or can be interrupted.
        cancellation.requested.add((claim.job_id, claim.token))
        self._interrupt_job(claim.job_id, TaskCancelled)
        self.event_loop.interrupt_job(claim.job_id)
        if self._interruptions.is_running(claim.job_id) or claim.job_id in self.event_loop.jobs:
            self.time_outs.note_told(claim, self.executor.longest_limit(claim))

    def places(self) -> tuple[dict[int, int], dict[int, asyncio.Task[None]]]:
        """Return the threads that run jobs, and the coroutines, each by job. Thread safe."""
        return self._interruptions.threads, self.event_loop.coroutines

    @property
    def is_crippled(self) -> bool:
        """Whether one of the lanes cannot run its jobs."""
        return self.event_loop.is_crippled

    @property
    def stuck(self) -> set[int]:
        """Jobs whose tasks did not end when they were told to, and whose worker has to."""
        return set(self.time_outs.stuck)

    @property
    def unending(self) -> set[int]:
        """The stuck jobs, and those whose tasks can go on only once these have ended."""
        stuck = self.stuck
        return stuck | self.event_loop.jobs if self.event_loop.blocked_by in stuck else stuck

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return self.pool.running + self.event_loop.running

    def interrupt(self) -> None:
        """Interrupt the running tasks. No job starts afterwards."""
        self.executor.breaking_off = True
        self.pool.interrupt()
        self.event_loop.interrupt()

    def close(self) -> None:
        """End the threads as soon as their tasks have ended."""
        self.time_outs.close()
        self.pool.close()
        self.event_loop.close()

    # --- the threads and the event loop ----------------------------------------------------------

    def _run(self, claim: ClaimedJob, task: Task) -> Work | None:
        began = time.monotonic()
        limit = self._limit_of(claim, task)
        # Before it is marked as started: if the worker is killed then, the job is given back, and
        # refused by another one.
        if (refused := self.executor.refusal_of(claim)) is not None:
            result = self.executor.refused(claim, refused)
        elif self._may_start(claim, limit):
            result = self._run_interruptibly(claim, task, limit)
        else:
            result = RunResult(outcomes.released(claim))
        if self.time_outs.watched:
            self.time_outs.end(claim.job_id)
        following = None
        if claim.concurrency_key is not None:
            following = self._following(result, on_loop=False)
        self._finish(Ended(result, False, time.monotonic() - began))
        self.executor.tidy()
        return following

    def _run_interruptibly(
        self, claim: ClaimedJob, task: Task, limit: TimeLimit | None
    ) -> RunResult:
        was_interrupted: object
        try:
            self._interruptions.enter(claim.job_id)
            try:
                result = self._cancelled_at_start(claim, limit) or self._execute(claim, task)
            except BaseException as error:
                result = self._broken(claim, error)
            was_interrupted = self._interruptions.leave(claim.job_id)
        except (TaskCancelled, TaskTimeout) as error:
            # It was raised between two of these steps. It is sent but once.
            self._interruptions.leave(claim.job_id)
            result, was_interrupted = self.executor.interrupted(claim, error), True
        if was_interrupted:
            close_own_connections()  # One of them may be in the middle of a statement.
        return result

    def _cancelled_at_start(self, claim: ClaimedJob, limit: TimeLimit | None) -> RunResult | None:
        """Have the time of an attempt watched; return its result if it was cancelled already."""
        if limit is not None:
            self.time_outs.begin(claim, limit)
        return self.executor.cancelled(claim) if is_requested(claim.job_id, claim.token) else None

    def _begin(self, claim: ClaimedJob, task: Task) -> Coroutine[None, None, None]:
        # The job counts as running from now on, even if other tasks block the loop for a while.
        return self._arun(claim, task, began=time.monotonic())

    async def _arun(self, claim: ClaimedJob, task: Task, began: float) -> None:
        limit = self._limit_of(claim, task)
        if (refused := self.executor.refusal_of(claim)) is not None:
            result = self.executor.refused(claim, refused)
        else:
            try:
                result = await self._astart(claim, task, limit)
            except BaseException as error:
                result = self._broken(claim, error)
        if self.time_outs.watched:
            self.time_outs.end(claim.job_id)
        following = None
        if claim.concurrency_key is not None:
            following = self._following(result, on_loop=True)
        seconds = time.monotonic() - began
        if self.event_loop.is_starting:  # It has had all of the loop to itself.
            seconds *= self.event_loop.size
        self._finish(Ended(result, True, seconds))
        if following is not None:
            self.event_loop.submit_next(following)
        if has_to_atidy():
            self.event_loop.leave()
            await self.executor.atidy()

    async def _astart(self, claim: ClaimedJob, task: Task, limit: TimeLimit | None) -> RunResult:
        attempt = None
        if self._gate.asks_for(claim):
            # Before it asks: no query is to pass between that and the start of its task.
            attempt = await self.executor.aprepared(claim, task)
        if not self._may_start(claim, limit):
            return RunResult(outcomes.released(claim))
        cancelled = self._cancelled_at_start(claim, limit)
        return cancelled or await self.executor.arun(claim, task, attempt)

    def _following(self, result: RunResult, *, on_loop: bool) -> Work | None:
        """Take the job that follows one that has ended; before the main thread hears of its end,
        which would start it elsewhere."""
        if result.outcome.ending is Ending.RELEASED:
            return None
        return self.followers.next_of(result.outcome.job_id, on_loop=on_loop)

    def _limit_of(self, claim: ClaimedJob, task: Task) -> TimeLimit | None:
        try:
            return self.executor.time_limit(claim, task)
        except Exception:
            return None  # The attempt itself will fail of what is wrong with its backend.

    def _may_start(self, claim: ClaimedJob, limit: TimeLimit | None) -> bool:
        """Mark a job as started, unless the worker may have lost it while the host was asleep."""
        if self.executor.breaking_off:
            return False  # The worker has ended, and another one will run its jobs.
        if claim.metadata is not None and not self._gate.may_start(claim):
            return False  # It has waited here for too long: it asks again.
        # In this order: either the mark is found when this worker is declared dead, or the lease
        # is seen to have expired.
        ends_at = None if limit is None else time.monotonic() + limit.longest
        self.context.journal.start(claim.job_id, claim.token, ends_at)
        if self.registration.holds_lease:
            return True
        self.context.journal.clear(claim.job_id, claim.token)
        return False

    def _broken(self, claim: ClaimedJob, error: BaseException) -> RunResult:
        if self.executor.breaking_off:
            return self.executor.broken_off(claim)
        if self.executor.was_interrupted(claim, error):
            return self.executor.interrupted(claim, error)
        return self.executor.broken(claim, error)

    def _tell_to_end(self, claim: ClaimedJob) -> None:
        """Interrupt the task of a job whose time is over."""
        self._interrupt_job(claim.job_id, TaskTimeout)
        self.event_loop.interrupt_job(claim.job_id)

    def _give_up(self, claim: ClaimedJob) -> bool:
        """Note that the task of such a job still runs, unless another one keeps it from ending."""
        if not self.event_loop.is_to_blame(claim.job_id):
            return False
        self.context.journal.mark_stuck(claim.job_id, claim.token)
        self.context.waiter.wake()
        return True

    def _finish(self, ended: Ended) -> None:
        result = ended.result
        if result.settled is None:
            self.context.journal.end(result.outcome)
        if result.error is not None:
            keep_frames(result.error)
        self.finished.append(ended)
        if self.context.waiter.sleeping:
            self.context.waiter.sleeping = False
            self.context.waiter.wake()


def _report_time_out(claim: ClaimedJob) -> None:
    logger.warning(
        "Job %d has taken longer than its time-out: its task is told to end",
        claim.job_id,
        extra=about_job("task.timed_out", claim),
    )


def _never(task: Task) -> bool:
    return False
