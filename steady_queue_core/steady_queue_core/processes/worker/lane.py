"""Lanes: the two places where a worker's jobs run, its threads and its event loop."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator
from typing import Protocol

from ...compat import Task
from ...configuration import Configuration
from ...dialects import ClaimedJob, Ending, Outcome
from ...errors import TaskCancelled, TaskTimeout
from ...features.delivery.options import TRANSACTIONAL
from ...features.time_limits.options import TimeLimit
from ...logging import get_logger
from ...tasks import cancellation
from ...tasks.cancellation import is_requested
from ...tasks.metadata import delivery_of
from ...tasks.registry import registered_tasks
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
from .prefetch import Prefetch, Throughput
from .process_executor import ProcessExecutor
from .rated_starts import RatedStarts
from .thread_pool import ThreadPool, Work
from .time_outs import TimeOuts

logger = get_logger("steady_queue.worker")

#: Seconds after which jobs that wait behind long tasks go back to the queue.
STALL = 0.25


class Runner(Protocol):
    """Runs a limited number of jobs at once; jobs that have not started can be withdrawn."""

    @property
    def waiting(self) -> int: ...
    @property
    def running(self) -> int: ...
    def submit(self, work: list[Work], /) -> None: ...
    def withdraw(self) -> list[ClaimedJob]: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


class Lane:
    """Counts the jobs of a runner and notices when they stall. Main thread only."""

    def __init__(self, runner: Runner, throughput: Throughput) -> None:
        self.runner, self.throughput = runner, throughput
        #: Number of jobs that run or wait in this lane.
        self.held = 0
        self._progress_at = 0.0

    def submit(self, work: list[Work]) -> None:
        """Queue jobs for the runner."""
        if work:
            if not self.runner.waiting:
                self._progress_at = time.monotonic()
            self.held += len(work)
            self.runner.submit(work)

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that have not started."""
        withdrawn = self.runner.withdraw()
        self.held -= len(withdrawn)
        return withdrawn

    def note_end(self) -> None:
        """Record that a job of this lane has ended."""
        self.held -= 1
        self._progress_at = time.monotonic()

    @property
    def until_stall(self) -> float:
        """Seconds until the waiting jobs count as stalled; infinite while none waits."""
        if not self.held or not self.runner.waiting:
            return math.inf
        return self._progress_at + STALL - time.monotonic()


class Lanes:
    """Runs claimed jobs, each in its lane, and collects their results for the main thread."""

    def __init__(
        self,
        context: ProcessContext,
        settings: Configuration.Worker,
        executor: Executor,
        processes: ProcessExecutor | None = None,
        rated_starts: RatedStarts | None = None,
    ) -> None:
        self.context, self.executor = context, executor
        self._rated_starts = rated_starts or RatedStarts()
        #: What runs a job in a thread of the pool.
        self._execute = executor.run if processes is None else processes.run
        #: Whether a task runs on the event loop: none does where task processes run all.
        self._on_loop = is_coroutine if processes is None else _never
        kinds = {self._on_loop(task) for task in registered_tasks()}
        self.prefetch = Prefetch(
            settings.threads, settings.coroutines, settings.prefetch, mixed=len(kinds) > 1
        )
        self.followers = Followers(self._on_loop)
        self._event_loop = EventLoop(settings.coroutines, self._begin)
        pool = ThreadPool(settings.threads, self._run)
        self._interruptions = pool.interruptions
        if processes is None:
            executor.end_interruptions = pool.interruptions.leave
        self.time_outs = TimeOuts(self._tell_to_end, self._give_up, _report_time_out)
        executor.exceeded_limit = self.time_outs.expired
        #: What interrupts a job that runs in a thread, or in the process of that thread.
        self._interrupt_job = (processes or pool).interrupt_job
        self.threads = Lane(pool, self.prefetch.threads)
        self.loop = Lane(self._event_loop, self.prefetch.coroutines)
        self.registration: ProcessRegistration
        #: Results on their way to the main thread, each with its lane and its duration.
        self._finished: deque[tuple[RunResult, Lane, float]] = deque()

    # --- main thread -----------------------------------------------------------------------------

    @property
    def has_results(self) -> bool:
        """Whether results are waiting to be collected."""
        return bool(self._finished)

    @property
    def limit(self) -> int:
        """Number of jobs to claim for both lanes."""
        return self.prefetch.limit(self.threads.held, self.loop.held)

    @property
    def until_stall(self) -> float:
        """Seconds until the waiting jobs of a lane count as stalled, or a follower as late."""
        stall = min(self.threads.until_stall, self.loop.until_stall)
        return min(stall, self.followers.until_late)

    def submit(self, work: list[Work]) -> None:
        """Run claimed jobs."""
        on_loop = [each for each in work if self._on_loop(each[1])]
        in_threads = [each for each in work if not self._on_loop(each[1])]
        self.threads.submit(in_threads)
        self.loop.submit(on_loop)
        self.prefetch.observe_kinds(len(on_loop), len(work))

    def shares(self, work: list[Work], left: int) -> Iterator[tuple[list[ClaimedJob], int]]:
        """Yield the jobs with a limit, by lane, and how many may follow each of them: ``left`` in
        all, and no more than are expected to start soon."""
        limited = [
            each
            for each in work
            if each[0].concurrency_key is not None and follows_in_chain(each[0])
        ]
        for lane in (self.threads, self.loop):
            holders = [claim for claim, task in limited if self._lane_of(task) is lane][:left]
            if holders and (share := min(lane.throughput.in_a_row, left // len(holders))):
                left -= share * len(holders)
                yield holders, share

    def late_with_keys(self, work: list[Work]) -> list[ClaimedJob]:
        """Return the jobs of ``work`` that have a unique key until they start, and have no place to
        start at once. Their lanes then hold fewer jobs beyond those that run."""
        # Most jobs have no metadata.
        described = [claim for claim, _ in work if claim.metadata is not None]
        if not any(claim.ends_key_at_start for claim in described):
            return []
        late = []
        places = {lane: lane.throughput.size - lane.held for lane in (self.threads, self.loop)}
        for claim, task in work:
            lane = self._lane_of(task)
            if places[lane] > 0 or not claim.ends_key_at_start:
                places[lane] -= 1
            else:
                late.append(claim)
                self.prefetch.observe_stall(lane.throughput)
        return late

    def follow(self, work: list[Work], claimed_from: float) -> None:
        """Run jobs after those that they follow, which are submitted next."""
        for _, task in work:
            self._lane_of(task).held += 1
        self.followers.add(work, claimed_from)

    def collect(self, limit: int) -> list[RunResult]:
        """Return up to ``limit`` results, and learn from their durations."""
        results: list[RunResult] = []
        durations: dict[Lane, list[float]] = {self.threads: [], self.loop: []}
        while self._finished and len(results) < limit:
            result, lane, seconds = self._finished.popleft()
            results.append(result)
            lane.note_end()
            if self.time_outs.watched:  # It may have ended when it was being told to.
                self.time_outs.end(result.outcome.job_id)
            if result.outcome.ending is not Ending.RELEASED:
                durations[lane].append(seconds)
            if self.followers.waiting:
                results += self._go_on_after(result.outcome)
        for lane, all_seconds in durations.items():
            if all_seconds:
                mean = sum(all_seconds) / len(all_seconds)
                self.prefetch.observe_ends(lane.throughput, mean)
        return results

    def withdraw(self, *, stalled: bool = False) -> list[ClaimedJob]:
        """Take back the jobs that have not started, or only those of a stalled lane."""
        withdrawn: list[ClaimedJob] = []
        for lane in (self.threads, self.loop):
            if stalled and lane.until_stall > 0:
                continue
            if stalled:
                self.prefetch.observe_stall(lane.throughput)
            withdrawn += lane.withdraw()
        for claim in list(withdrawn):
            withdrawn += self._given_up(self.followers.withdraw_after(claim.job_id))
        late = self.followers.withdraw_late() if stalled else self.followers.withdraw_all()
        return withdrawn + self._given_up(late)

    def cancel(self, claim: ClaimedJob) -> None:
        """Interrupt the task of a job; one that has not started does not start. A task that does
        not end is given up as after a time-out."""
        # In this order: a job that starts meanwhile sees the request, or can be interrupted.
        cancellation.requested.add((claim.job_id, claim.token))
        self._interrupt_job(claim.job_id, TaskCancelled)
        self._event_loop.interrupt_job(claim.job_id)
        if self._interruptions.is_running(claim.job_id) or claim.job_id in self._event_loop.jobs:
            self.time_outs.note_told(claim, self.executor.longest_limit(claim))

    def places(self) -> tuple[dict[int, int], dict[int, asyncio.Task[None]]]:
        """Return the threads that run jobs, and the coroutines, each by job. Thread safe."""
        return self._interruptions.threads, self._event_loop.coroutines

    @property
    def is_crippled(self) -> bool:
        """Whether one of the lanes cannot run its jobs."""
        return self._event_loop.is_crippled

    @property
    def stuck(self) -> set[int]:
        """Jobs whose tasks did not end when they were told to, and whose worker has to."""
        return set(self.time_outs.stuck)

    @property
    def unending(self) -> set[int]:
        """The stuck jobs, and those whose tasks can go on only once these have ended."""
        stuck = self.stuck
        return stuck | self._event_loop.jobs if self._event_loop.blocked_by in stuck else stuck

    def _go_on_after(self, ended: Outcome) -> list[RunResult]:
        """Start what follows a job, unless its thread has done so, or it is too late."""
        follower = self.followers.take(ended.job_id)
        if follower is None:
            return []
        claim, task = follower.work
        if ended.ending is not Ending.RELEASED and not follower.is_late:
            self._lane_of(task).runner.submit([follower.work])
            return []
        others = self.followers.withdraw_after(claim.job_id)
        given_up = self._given_up([follower.work, *others])
        return [RunResult(outcomes.released(each)) for each in given_up]

    def _given_up(self, work: Iterable[Work]) -> list[ClaimedJob]:
        """Return the claims of followers that do not start here."""
        claims = []
        for claim, task in work:
            self._lane_of(task).held -= 1
            claims.append(claim)
        return claims

    def _lane_of(self, task: Task) -> Lane:
        return self.loop if self._on_loop(task) else self.threads

    # --- any thread ------------------------------------------------------------------------------

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return self.threads.runner.running + self.loop.runner.running

    def interrupt(self) -> None:
        """Interrupt the running tasks. No job starts afterwards."""
        self.executor.breaking_off = True
        self.threads.runner.interrupt()
        self.loop.runner.interrupt()

    def close(self) -> None:
        """End the threads as soon as their tasks have ended."""
        self.time_outs.close()
        self.threads.runner.close()
        self.loop.runner.close()

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
        self._finish(result, self.threads, time.monotonic() - began)
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
        if self._event_loop.is_starting:  # It has had all of the loop to itself.
            seconds *= self._event_loop.size
        self._finish(result, self.loop, seconds)
        if following is not None:
            self._event_loop.submit_next(following)
        if has_to_atidy():
            self._event_loop.leave()
            await self.executor.atidy()

    async def _astart(self, claim: ClaimedJob, task: Task, limit: TimeLimit | None) -> RunResult:
        attempt = None
        if claim.metadata is not None and claim.has_rate:
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
        if claim.metadata is not None and not self._rated_starts.may_start(claim):
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
        self._event_loop.interrupt_job(claim.job_id)

    def _give_up(self, claim: ClaimedJob) -> bool:
        """Note that the task of such a job still runs, unless another one keeps it from ending."""
        if not self._event_loop.is_to_blame(claim.job_id):
            return False
        self.context.journal.mark_stuck(claim.job_id, claim.token)
        self.context.waiter.wake()
        return True

    def _finish(self, result: RunResult, lane: Lane, seconds: float) -> None:
        if result.settled is None:
            self.context.journal.end(result.outcome)
        if result.error is not None:
            keep_frames(result.error)
        self._finished.append((result, lane, seconds))
        if self.context.waiter.sleeping:
            self.context.waiter.sleeping = False
            self.context.waiter.wake()


def follows_in_chain(claim: ClaimedJob) -> bool:
    """Whether a job may run after others without a permit of its own, until it gets theirs. One
    that is settled where its task runs does not: it cannot name an heir. Nor does one with a rate
    limit: it asks just before it starts."""
    return delivery_of(claim) != TRANSACTIONAL and not claim.has_rate


def _report_time_out(claim: ClaimedJob) -> None:
    logger.warning(
        "Job %d has taken longer than its time-out: its task is told to end",
        claim.job_id,
        extra=about_job("task.timed_out", claim),
    )


def _never(task: Task) -> bool:
    return False
