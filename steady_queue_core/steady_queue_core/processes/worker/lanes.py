"""Lanes: how a worker's jobs are spread over its threads and its event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...compat import Task
from ...configuration import Configuration
from ...dialects import ClaimedJob, Ending, Outcome
from ...tasks.registry import registered_tasks
from ..base import diagnosis
from ..base.context import ProcessContext
from ..base.log_context import named
from . import outcomes
from .attempt import RunResult
from .executor import Executor
from .followers import follows_in_chain
from .lane import Lane
from .prefetch import Prefetch
from .process_executor import ProcessExecutor
from .runs import Runs, StartGate
from .thread_pool import Work


class Lanes(Runs):
    """Has claimed jobs run, each in its lane, and collects their results. Main thread only, but for
    ``log_stacks`` and what it inherits."""

    def __init__(
        self,
        context: ProcessContext,
        settings: Configuration.Worker,
        executor: Executor,
        processes: ProcessExecutor | None = None,
        gate: StartGate | None = None,
    ) -> None:
        super().__init__(context, settings, executor, processes, gate)
        kinds = {self.runs_on_loop(task) for task in registered_tasks()}
        self.prefetch = Prefetch(
            settings.threads, settings.coroutines, settings.prefetch, mixed=len(kinds) > 1
        )
        self.threads = Lane(self.pool, self.prefetch.threads)
        self.loop = Lane(self.event_loop, self.prefetch.coroutines)

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
        on_loop = [each for each in work if self.runs_on_loop(each[1])]
        in_threads = [each for each in work if not self.runs_on_loop(each[1])]
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

    def late(self, work: list[Work], is_urgent: Callable[[ClaimedJob], bool]) -> list[ClaimedJob]:
        """Return the urgent jobs of ``work`` that have no place to start at once. Their lanes then
        hold fewer jobs beyond those that run."""
        # Most jobs have no metadata.
        described = [claim for claim, _ in work if claim.metadata is not None]
        if not any(map(is_urgent, described)):
            return []
        late = []
        places = {lane: lane.throughput.size - lane.held for lane in (self.threads, self.loop)}
        for claim, task in work:
            lane = self._lane_of(task)
            if places[lane] > 0 or not is_urgent(claim):
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
        while self.finished and len(results) < limit:
            result, on_loop, seconds = self.finished.popleft()
            lane = self.loop if on_loop else self.threads
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
        return self.loop if self.runs_on_loop(task) else self.threads

    def log_stacks(self, held: Iterable[ClaimedJob]) -> None:
        """Log what each thread and coroutine does, and for which of the jobs held. Thread safe."""
        names = {claim.job_id: named(claim) for claim in held}
        threads, coroutines = self.places()
        diagnosis.log_stacks(
            {thread: names[job_id] for job_id, thread in threads.items() if job_id in names},
            [(names[job_id], task) for job_id, task in coroutines.items() if job_id in names],
        )
