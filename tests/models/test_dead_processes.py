"""Processes that are dead, and what they had claimed: on every database."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending, limited_job, stored_id
from steady_queue_core.dialects import ClaimedJob, Ending, ProcessIdentity, QueueSelector, portable
from steady_queue_core.errors import ProcessExitError
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Permit,
    Process,
    ReadyExecution,
)
from steady_queue_core.models import process as processes
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.supervisor.pruning import Pruner
from steady_queue_core.processes.supervisor.recovery import Rescuer

from .everywhere import Jobs, on_every_database, on_every_server
from .recurrence import tasks

LEASE = timedelta(minutes=5)
EVERYTHING = QueueSelector(patterns=("*",))
ERRORS = "steady_queue_core.errors"


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


class Deaths(Jobs):
    """A worker that may go silent, with what it has claimed, and a supervisor that looks after."""

    def __init__(self, using: str) -> None:
        super().__init__(using)
        database = QueueDatabase(using)
        self.recovery = Rescuer(database)
        self.pruning = Pruner(database, self.recovery, LEASE)

    def register(self, name: str, **fields: Any) -> ProcessIdentity:
        given = {"kind": "worker", "hostname": "here", "supervisor_id": None} | fields
        return processes.register(self.using, name=name, pid=7, metadata="{}", **given)

    def silence(self, *names: str) -> None:
        """Let an hour pass without a heartbeat of these."""
        past = portable.storable(self.dialect.current_time(self.connection) - timedelta(hours=1))
        rows = Process.objects.using(self.using).filter(name__in=names)
        assert rows.update(last_heartbeat_at=past) == len(names)

    def prune(self) -> None:
        self.pruning.prune(self.pruning.expired(), lambda process: None)

    def limited(self, count: int, key: str = "key") -> list[int]:
        """Enqueue jobs one by one of which one may run at a time."""
        return [
            stored_id(new)
            for _ in range(count)
            for new in self.dialect.enqueue(self.connection, [limited_job(key)])
        ]

    def end(self, claim: ClaimedJob, how: Ending = Ending.FINISHED) -> bool:
        """Store an outcome; tell whether the claim still held."""
        outcome = ending(how, claim, attempts=1, exception_class="a.B")
        return claim.job_id in self.dialect.settle(connections[self.using], [outcome])

    @property
    def names(self) -> list[str]:
        return sorted(Process.objects.using(self.using).values_list("name", flat=True))

    @property
    def failures(self) -> dict[int, str]:
        rows = FailedExecution.objects.using(self.using)
        return dict(rows.values_list("job_id", "exception_class"))


@on_every_database
def test_silent_processes_are_pruned_and_their_jobs_fail_and_no_others(using: str) -> None:
    jobs = Deaths(using)
    supervisor = jobs.register("supervisor-2", kind="supervisor", hostname='wörk er\'s "host"')
    child = jobs.register("worker-2", supervisor_id=supervisor.id)
    jobs.register("alive")
    mine = jobs.claimed(2)
    jobs.worker = child
    theirs = jobs.claimed(3)
    jobs.silence("supervisor-2", "worker-2")

    jobs.prune()

    assert jobs.names == ["alive", "worker-1"]
    assert jobs.failures == {claim.job_id: f"{ERRORS}.ProcessPrunedError" for claim in theirs}
    assert jobs.ids(ClaimedExecution) == [claim.job_id for claim in mine]


@on_every_database
def test_a_silent_process_with_attempts_left_for_its_jobs_has_them_run_again(using: str) -> None:
    jobs = Deaths(using)
    [claim] = jobs.claimed(max_attempts=2)
    jobs.silence("worker-1")
    jobs.prune()
    job = jobs.all.get(pk=claim.job_id)
    assert (job.attempts, job.finished_at) == (1, None)
    assert jobs.failures == {}


@on_every_database
def test_claims_of_a_process_that_is_not_registered_end(using: str) -> None:
    jobs = Deaths(using)
    first, second = jobs.limited(2)
    jobs.claim()
    processes.deregister(using, "worker-1")
    jobs.recovery.rescue_orphans()
    assert jobs.failures == {first: f"{ERRORS}.ProcessMissingError"}
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [second]


@on_every_database
def test_a_process_that_is_not_registered_and_lives_has_time_to_store_its_outcomes(
    using: str,
) -> None:
    jobs = Deaths(using)
    [claim] = jobs.claimed()
    processes.deregister(using, "worker-1")
    jobs.prune()
    jobs.prune()
    assert jobs.ids(ClaimedExecution) == [claim.job_id]
    assert jobs.end(claim)
    assert jobs.failures == {}


@on_every_database
@pytest.mark.parametrize("left", [None, JournalSnapshot()], ids=["nothing left", "marks left"])
def test_what_a_dead_process_claims_too_late_to_start_it_is_ready_again(
    using: str, left: JournalSnapshot | None
) -> None:
    jobs = Deaths(using)
    first, second = jobs.limited(2)
    jobs.recovery.rescue_process("worker-1", left, ProcessExitError("It has left."))
    # As a statement does that was under way when its process was killed.
    ready = ReadyExecution.objects.using(using).filter(pk=first)
    row = ready.values("job_id", "token", "queue_name", "rank", "created_at").get()
    ClaimedExecution.objects.using(using).create(**row, process_id=jobs.worker.id)
    ready.delete()
    jobs.prune()
    assert jobs.failures == {}
    assert jobs.all.get(pk=first).attempts == 0
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [first]
    assert jobs.ids(BlockedExecution) == [second]


@on_every_database
@pytest.mark.parametrize("how", [Ending.FINISHED, Ending.FAILED, Ending.RELEASED])
def test_a_pruned_worker_that_wakes_up_ends_nothing_and_lets_nobody_in(
    using: str, how: Ending
) -> None:
    jobs = Deaths(using)
    first, second, third = jobs.limited(3)
    [claim] = jobs.claim()
    jobs.silence("worker-1")
    jobs.prune()
    before = jobs.all.get(pk=first)
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [second]

    assert not jobs.end(claim, how)

    after = jobs.all.get(pk=first)
    assert (after.finished_at, after.errors) == (before.finished_at, before.errors)
    assert jobs.failures == {first: f"{ERRORS}.ProcessPrunedError"}
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [second]
    assert jobs.ids(BlockedExecution) == [third]


@on_every_database
def test_who_prunes_too_late_fails_no_job_that_has_finished(using: str) -> None:
    jobs = Deaths(using)
    [claim] = jobs.claimed()
    jobs.silence("worker-1")
    settle = jobs.recovery._settle

    def too_late(done: Any) -> set[int]:
        assert jobs.end(claim)
        held = settle(done)
        assert held == set()
        return held

    jobs.recovery._settle = too_late  # type: ignore[method-assign]  # mutant
    jobs.prune()
    assert jobs.failures == {}
    assert jobs.all.get(pk=claim.job_id).finished_at is not None
    assert jobs.names == []


@on_every_database
def test_of_a_dead_worker_only_what_it_was_running_fails(using: str) -> None:
    jobs = Deaths(using)
    running, *untouched = jobs.claimed(3)
    left = JournalSnapshot(running=frozenset({running.job_id}), finished={})
    jobs.recovery.rescue_process("worker-1", left, ProcessExitError("It has left."))
    assert jobs.failures == {running.job_id: f"{ERRORS}.ProcessExitError"}
    assert jobs.ids(ReadyExecution) == [claim.job_id for claim in untouched]
    assert not jobs.all.exclude(pk=running.job_id).exclude(attempts=0).exists()


@on_every_database
def test_a_job_given_back_under_a_limit_is_not_blocked(using: str) -> None:
    jobs = Deaths(using)
    first, second = jobs.limited(2)
    [claim] = jobs.claim()
    assert jobs.end(claim, Ending.RELEASED)
    assert (jobs.ids(ReadyExecution), jobs.ids(BlockedExecution)) == ([first], [second])


@on_every_server
def test_an_end_waits_for_another_end_of_the_same_claim_and_then_changes_nothing(
    using: str,
) -> None:
    """A worker and whoever declares it dead, at the same time."""
    jobs = Deaths(using)
    _, second, third = jobs.limited(3)
    [claim] = jobs.claim()
    ended, go_on = threading.Event(), threading.Event()

    def finish() -> bool:
        with jobs.dialect.transaction(connections[using]):
            held = jobs.end(claim)
            ended.set()
            assert go_on.wait(20)
        return held

    finishing = threads.start(using, finish)
    assert ended.wait(20)
    failing = threads.start(using, lambda: jobs.end(claim, Ending.FAILED))
    go_on.set()
    assert (finishing.result(20), failing.result(20)) == (True, False)
    assert jobs.failures == {}
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [second]
    assert jobs.ids(BlockedExecution) == [third]


@on_every_database
def test_ends_and_returns_under_one_key_do_not_deadlock(using: str) -> None:
    jobs = Deaths(using)
    at_once, count = 4, 40
    for _ in range(count):
        jobs.dialect.enqueue(jobs.connection, [limited_job(to=at_once)])
    barrier = threading.Barrier(at_once)

    def work(number: int) -> int:
        ended = 0
        barrier.wait(20)
        while jobs.all.filter(finished_at=None).exists():
            for claim in jobs.dialect.claim(connections[using], jobs.worker, EVERYTHING, 1):
                again = (claim.token >> 32) % 2 == number % 2
                assert jobs.end(claim, Ending.RELEASED if again else Ending.FINISHED)
                ended += not again
        return ended

    functions = [lambda number=number: work(number) for number in range(at_once)]
    assert sum(threads.run_all(using, functions, 60)) == count
    assert jobs.ids(Permit) == jobs.ids(BlockedExecution) == jobs.ids(ClaimedExecution) == []
