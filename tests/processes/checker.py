"""Judges what happened to jobs by the effect log, the signals sent, and the database at the end.

Its verdicts are independent of the product's code: it reads tables with plain SQL, and the log that
the tasks have written.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

#: Seconds after the last line of a task in which its outcome may not have been stored yet.
SETTLING = 0.5


class Attempt(NamedTuple):
    """One run of a task, as it logged itself. ``ended_at`` is ``None``: it never ended."""

    job_id: int
    token: int
    pid: int
    started_at: int
    ended_at: int | None = None


class Kill(NamedTuple):
    """A signal that a test has sent, between two instants of the monotonic clock."""

    pid: int
    before: int
    after: int
    signum: int = signal.SIGKILL


@dataclass(frozen=True)
class JobRow:
    """A job at the end."""

    #: Names of the states that the job is in: there should be one.
    states: tuple[str, ...]
    token: int = 0
    max_attempts: int = 1
    attempts: int = 0
    return_value: str | None = None
    error: str = ""


@dataclass(frozen=True)
class Snapshot:
    """The queue's tables at one instant."""

    jobs: dict[int, JobRow] = field(default_factory=dict)
    #: Pids of the registered processes.
    processes: tuple[int, ...] = ()
    #: Jobs that have an execution row, and no row of their own.
    strays: tuple[int, ...] = ()


def read_effects(text: str) -> list[Attempt]:
    """Return the attempts that an effect log tells of, in the order of their starts."""
    attempts: dict[tuple[int, int, int], Attempt] = {}
    twice: list[Attempt] = []
    for line in text.splitlines():
        event, *numbers = line.split()
        job_id, token, pid, instant = map(int, numbers)
        key = (job_id, token, pid)
        if event == "start":
            if key in attempts:
                twice.append(attempts[key])
            attempts[key] = Attempt(job_id, token, pid, instant)
        elif event == "end":
            attempts[key] = attempts[key]._replace(ended_at=instant)
    return sorted([*attempts.values(), *twice], key=lambda attempt: attempt.started_at)


STATES = {
    "ready": "steady_queue_ready_executions",
    "scheduled": "steady_queue_scheduled_executions",
    "blocked": "steady_queue_blocked_executions",
    "waiting": "steady_queue_waiting_executions",
    "claimed": "steady_queue_claimed_executions",
    "failed": "steady_queue_failed_executions",
}


def take_snapshot(read: Callable[[str], Iterable[tuple[Any, ...]]]) -> Snapshot:
    """Read all tables by ``read``, which runs a query and sees all of them as of one instant."""
    states: dict[int, list[str]] = defaultdict(list)
    for state, table in STATES.items():
        for (job_id,) in read(f"SELECT job_id FROM {table}"):
            states[job_id].append(state)
    errors = dict(read("SELECT job_id, exception_class FROM steady_queue_failed_executions"))
    jobs = {}
    for job_id, token, most, attempts, value, finished_at in read(
        "SELECT id, token, max_attempts, attempts, return_value, finished_at FROM steady_queue_jobs"
    ):
        held = states.pop(job_id, [])
        if finished_at is not None and "failed" not in held:
            held.append("finished")
        jobs[job_id] = JobRow(
            tuple(held), token, most, attempts, value, errors.get(job_id, "").rpartition(".")[2]
        )
    pids = tuple(pid for (pid,) in read("SELECT pid FROM steady_queue_processes"))
    return Snapshot(jobs, pids, tuple(states))


def check(
    enqueued: Sequence[int],
    attempts: Sequence[Attempt],
    snapshot: Snapshot,
    kills: Sequence[Kill] = (),
    *,
    living: Collection[int] = (),
    own_failures: Collection[int] = (),
    threads: int | None = None,
) -> list[str]:
    """Return a sentence for each promise that was broken.

    ``living``: pids of the queue's processes that live on. ``own_failures``: jobs whose task raises
    by itself. ``threads``: how many tasks one worker runs at once. Without ``kills`` this is what a
    graceful stop promises: nothing repeated, nothing failed.
    """
    judge = _Judge(kills, own_failures)
    by_job: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_job[attempt.job_id].append(attempt)
    for job_id in enqueued:
        row = snapshot.jobs.get(job_id)
        if row is None:
            judge.say(f"job {job_id} is lost: its row is gone")
        else:
            judge.state(job_id, row)
            judge.outcome(job_id, row, by_job[job_id])
        judge.repetitions(job_id, by_job[job_id], row)
    for job_id in set(snapshot.jobs).union(by_job, snapshot.strays) - set(enqueued):
        judge.say(f"job {job_id} was never enqueued")
    for pid in set(snapshot.processes) - set(living):
        judge.say(f"process {pid} is dead and still registered")
    judge.damage(threads)
    return judge.complaints


class _Judge:
    def __init__(self, kills: Sequence[Kill], own_failures: Collection[int]) -> None:
        self.own_failures = frozenset(own_failures)
        self.complaints: list[str] = []
        #: Jobs that failed without a line in the log.
        self._unstarted: dict[int, str] = {}
        #: Attempts that came to nothing by a kill.
        self._cost: dict[Kill, set[Attempt]] = defaultdict(set)
        self._kills: dict[int, list[Kill]] = defaultdict(list)
        #: When stopped processes were told to go on.
        self._resumptions: dict[int, list[Kill]] = defaultdict(list)
        for kill in kills:
            if kill.signum in (signal.SIGKILL, signal.SIGSTOP):
                self._kills[kill.pid].append(kill)
            elif kill.signum == signal.SIGCONT:
                self._resumptions[kill.pid].append(kill)

    def say(self, complaint: str) -> None:
        self.complaints.append(complaint)

    def state(self, job_id: int, row: JobRow) -> None:
        """I1 and I2: it has ended, and is in one state."""
        if len(row.states) != 1:
            self.say(f"job {job_id} is in {len(row.states)} states: {', '.join(row.states)}")
        elif row.states[0] not in ("finished", "failed"):
            self.say(f"job {job_id} has not ended: it is {row.states[0]}")

    def outcome(self, job_id: int, row: JobRow, attempts: list[Attempt]) -> None:
        """I3 and I5: the outcome is that of the attempt that held the claim."""
        if "finished" in row.states:
            ended = [attempt.token for attempt in attempts if attempt.ended_at is not None]
            if row.token not in ended:
                self.say(f"job {job_id} finished under token {row.token}, which ended no task")
            elif row.return_value is not None and row.return_value != str(row.token):
                self.say(
                    f"job {job_id} finished under token {row.token} with the result of the "
                    f"attempt {row.return_value}"
                )
        unended = [attempt for attempt in attempts if attempt.ended_at is None]
        for attempt in unended:
            if self._excuse(attempt) is None:
                self.say(f"job {job_id} never ended, though nobody killed worker {attempt.pid}")
        if "failed" in row.states and job_id not in self.own_failures:
            if not attempts:
                self._unstarted[job_id] = row.error
            elif (kill := self._excuse(attempts[-1])) is None:
                self.say(f"job {job_id} failed with {row.error}; its worker was not killed then")
            else:
                self._cost[kill].add(attempts[-1])

    def repetitions(self, job_id: int, attempts: list[Attempt], row: JobRow | None) -> None:
        """I3 and I4: a job starts again only if the attempt before was interrupted."""
        for earlier, later in pairwise(attempts):
            if later.token <= earlier.token:
                self.say(f"job {job_id} started with token {later.token} after {earlier.token}")
            if job_id in self.own_failures:
                continue
            excuse = self._excuse(earlier)
            if excuse is None:
                self.say(f"job {job_id} ran again although its worker {earlier.pid} was not killed")
            else:
                self._cost[excuse].add(earlier)
                if excuse.signum == signal.SIGKILL and later.started_at < excuse.before:
                    self.say(f"job {job_id} ran again before its worker {earlier.pid} was killed")
        if row is not None and len(attempts) > row.max_attempts:
            self.say(f"job {job_id} started {len(attempts)} times of {row.max_attempts} allowed")

    def damage(self, threads: int | None) -> None:
        """I4: a killed worker costs what it was running, and not what it had claimed."""
        possible = 0
        if threads is not None:
            for kill, cost in self._cost.items():
                if len(cost) > threads:
                    self.say(f"the kill of {kill.pid} cost {len(cost)} jobs of {threads} threads")
            # A kill may hit a task that has started and not got as far as its first line.
            kills = sum(
                kill.signum == signal.SIGKILL for each in self._kills.values() for kill in each
            )
            possible = threads * kills - sum(map(len, self._cost.values()))
        if len(self._unstarted) > possible:
            for job_id, error in self._unstarted.items():
                self.say(f"job {job_id} failed with {error} and had never started")

    def _excuse(self, attempt: Attempt) -> Kill | None:
        """Return the kill that interrupted an attempt, or the storing of its outcome."""
        for kill in self._kills[attempt.pid]:
            end = attempt.ended_at
            still_there = end is None or end + SETTLING * 1e9 >= kill.before
            if still_there and (attempt.started_at <= kill.after or self._met(attempt, kill)):
                return kill
        return None

    def _met(self, attempt: Attempt, stop: Kill) -> bool:
        """Whether an attempt had started when it was stopped, and not got as far as its first line,
        which it has left as soon as it could go on."""
        resumed = [each for each in self._resumptions[attempt.pid] if each.before > stop.before]
        if stop.signum != signal.SIGSTOP or not resumed:
            return False
        return resumed[0].before <= attempt.started_at <= resumed[0].after + SETTLING * 1e9
