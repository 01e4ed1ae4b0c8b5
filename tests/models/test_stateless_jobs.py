"""Jobs that have lost their state are found, and nothing else is: on every database."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import limited_job, stored_id
from steady_queue_core.dialects import DependencyState, MemberState, portable
from steady_queue_core.models import (
    BatchMember,
    BlockedExecution,
    ClaimedExecution,
    Dependency,
    FailedExecution,
    Job,
    JobBatch,
    Permit,
    ReadyExecution,
    ScheduledExecution,
    Semaphore,
    WaitingExecution,
)
from steady_queue_core.models.operations.stateless_jobs import BATCH, NOBODY, StatelessJobs
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.supervisor import stateless_sweep
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.supervisor.stateless_sweep import StatelessSweep

from .everywhere import Jobs, on_every_database, on_every_server
from .recurrence import tasks

MISSING = "steady_queue_core.errors.StateMissingError"
EXECUTIONS: tuple[Any, ...] = (
    ReadyExecution,
    ScheduledExecution,
    BlockedExecution,
    WaitingExecution,
    ClaimedExecution,
    FailedExecution,
)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The sweep's clock, which the test moves."""
    clock = Clock()
    monkeypatch.setattr(stateless_sweep, "time", clock)
    return clock


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Strays(Jobs):
    """Jobs of which some have lost their state."""

    def __init__(self, using: str) -> None:
        super().__init__(using)
        self.sweep = StatelessSweep(QueueDatabase(using), Rescuer(QueueDatabase(using)))
        self.found = StatelessJobs(using, self.all)

    def lose(self, job_ids: Iterable[int]) -> list[int]:
        """Delete the executions of jobs, as a statement in SQL would; let them be old."""
        lost = list(job_ids)
        for model in EXECUTIONS:
            model.objects.using(self.using).filter(pk__in=lost).delete()
        self.age()
        return lost

    def age(self) -> None:
        """Let all jobs be an hour old."""
        past = portable.storable(self.dialect.current_time(self.connection) - HOUR)
        self.all.update(enqueued_at=past)

    def limited(self, count: int, key: str = "key") -> list[int]:
        return [
            stored_id(new)
            for _ in range(count)
            for new in self.dialect.enqueue(self.connection, [limited_job(key)])
        ]

    def states(self, job_id: int) -> list[str]:
        return [
            model.__name__
            for model in EXECUTIONS
            if model.objects.using(self.using).filter(pk=job_id).exists()
        ]

    @property
    def failures(self) -> dict[int, str]:
        rows = FailedExecution.objects.using(self.using)
        return dict(rows.values_list("job_id", "exception_class"))

    def pass_over(self, clock: Clock) -> None:
        """Let a whole pass and its doubts go by."""
        self.sweep._next_step = clock.now
        for _ in range(200):
            self.sweep.step()
            if self.sweep._next_step - clock.now >= stateless_sweep.REST:
                return
            clock.now = self.sweep._next_step
        raise AssertionError("The pass did not end.")


@on_every_database
def test_a_job_in_each_state_that_has_lost_it_is_found_and_fails(
    using: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = Strays(using)
    failed = jobs.failed(1)
    claimed = [claim.job_id for claim in jobs.claimed(2)]
    ready, blocked = jobs.ready(2), jobs.limited(3)
    past = portable.storable(jobs.dialect.current_time(jobs.connection) - HOUR)
    scheduled = jobs.ready(1)
    jobs.all.filter(pk__in=scheduled).update(scheduled_at=past)
    jobs.all.filter(pk__in=failed).update(finished_at=None)
    lost = jobs.lose([*ready, *blocked, *claimed, *failed, *scheduled])
    with caplog.at_level(logging.WARNING, "steady_queue.supervisor"):
        jobs.pass_over(clock)
    assert jobs.failures == dict.fromkeys(sorted(lost), MISSING)
    assert all(jobs.states(pk) == ["FailedExecution"] for pk in lost)
    told = [vars(each) for each in caplog.records]
    [record] = [each for each in told if each.get("event") == "supervisor.jobs_without_state"]
    assert record["jobs"] == len(lost)
    assert jobs.ids(Permit) == []
    job = jobs.all.get(pk=lost[0])
    assert (job.attempts, job.max_attempts) == (1, 1)
    assert json.loads(job.errors)[0][0] == MISSING


@on_every_database
def test_one_with_attempts_left_runs_again_under_its_limit(using: str, clock: Clock) -> None:
    jobs = Strays(using)
    [lost, holder] = jobs.limited(2)
    jobs.all.filter(pk=lost).update(max_attempts=3)
    jobs.lose([lost])
    Permit.objects.using(using).filter(pk=lost).update(job_id=holder)
    BlockedExecution.objects.using(using).filter(pk=holder).delete()
    ReadyExecution.objects.using(using).create(
        job_id=holder, queue_name="default", created_at=portable.storable(Jobs.present(using))
    )
    jobs.pass_over(clock)
    assert jobs.failures == {}
    assert jobs.states(lost) in (["BlockedExecution"], ["ScheduledExecution"])
    assert jobs.states(holder) == ["ReadyExecution"]
    job = jobs.all.get(pk=lost)
    assert (job.attempts, job.max_attempts, job.finished_at) == (1, 3, None)
    [semaphore] = Semaphore.objects.using(using).all()
    assert jobs.ids(Permit) == [holder]
    assert semaphore.pk == "key"


@on_every_database
def test_jobs_that_have_a_state_or_have_ended_are_left_alone(
    using: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = Strays(using)
    jobs.finished(2)
    jobs.all.filter(pk__in=jobs.failed(2)[:1]).update(finished_at=None)  # Somebody's SQL.
    claimed = jobs.claimed(2)
    scheduled, waiting = jobs.lose(jobs.ready(2))
    columns: dict[str, Any] = {
        "queue_name": "default",
        "created_at": portable.storable(Jobs.present(using)),
    }
    ScheduledExecution.objects.using(using).create(
        job_id=scheduled, due_at=columns["created_at"], **columns
    )
    WaitingExecution.objects.using(using).create(job_id=waiting, width=1, **columns)
    jobs.ready(2)
    jobs.limited(3)
    jobs.age()
    before = {model: jobs.ids(model) for model in EXECUTIONS}
    with caplog.at_level(logging.INFO, "steady_queue.supervisor"):
        jobs.pass_over(clock)
    assert caplog.records == []
    assert set(jobs.failures.values()) == {"builtins.ValueError"}
    assert {model: jobs.ids(model) for model in EXECUTIONS} == before
    assert len(jobs.ids(ClaimedExecution)) == len(claimed)


@on_every_database
def test_a_job_that_is_new_or_not_due_is_left_alone(using: str, clock: Clock) -> None:
    jobs = Strays(using)
    new, later = jobs.ready(2)
    jobs.lose([new, later])
    future = portable.storable(jobs.dialect.current_time(jobs.connection) + HOUR)
    jobs.all.filter(pk=new).update(enqueued_at=future - HOUR)
    jobs.all.filter(pk=later).update(scheduled_at=future)
    jobs.pass_over(clock)
    assert jobs.failures == {}
    assert jobs.states(new) == jobs.states(later) == []


@on_every_database
def test_it_has_to_be_found_twice_a_minute_apart(using: str, clock: Clock) -> None:
    jobs = Strays(using)
    here, gone, back = jobs.lose(jobs.ready(3))
    clock.now = jobs.sweep._next_step
    jobs.sweep.step()
    clock.now += stateless_sweep.DOUBT - 1
    jobs.sweep.step()
    assert jobs.failures == {}
    jobs.all.filter(pk=gone).delete()
    ReadyExecution.objects.using(using).create(
        job_id=back, queue_name="default", created_at=portable.storable(Jobs.present(using))
    )
    clock.now += 2
    jobs.sweep.step()
    assert jobs.failures == {here: MISSING}
    assert jobs.states(back) == ["ReadyExecution"]


@on_every_database
def test_one_that_waits_for_others_waits_again(using: str, clock: Clock) -> None:
    jobs = Strays(using)
    parent, child = jobs.ready(2)
    present = portable.storable(Jobs.present(using))
    batch = JobBatch.objects.using(using).create(created_at=present, started_at=present)
    first, second = (
        BatchMember.objects.using(using).create(
            batch=batch, job_id=pk, name=str(pk), state=MemberState.PENDING
        )
        for pk in (parent, child)
    )
    assert second.pk
    Dependency.objects.using(using).create(
        job_id=child, parent=first, run_when=0, state=DependencyState.OPEN, number=0
    )
    jobs.lose([child])
    jobs.pass_over(clock)
    assert jobs.failures == {}
    [waiting] = WaitingExecution.objects.using(using).all()
    assert (waiting.pk, waiting.width, waiting.queue_name) == (child, 1, "default")


@on_every_database
def test_a_pass_goes_through_all_jobs(
    using: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steady_queue_core.models.operations.stateless_jobs.BATCH", 4)
    monkeypatch.setattr("steady_queue_core.models.operations.stateless_jobs.MOST_JUDGED", 3)
    monkeypatch.setattr(stateless_sweep, "MOST", 2)
    jobs = Strays(using)
    ids = jobs.ready(18)
    lost = jobs.lose([*ids[2:5], ids[9], *ids[12:16], ids[17]])
    jobs.pass_over(clock)
    assert sorted(jobs.failures) == sorted(lost)
    assert BATCH > 4


@on_every_server
def test_one_of_two_who_have_found_it_gives_it_a_state(using: str) -> None:
    jobs = Strays(using)
    [lost] = jobs.lose(jobs.ready(1))

    def take() -> bool:
        return StatelessJobs(using, Job.objects.using(using)).take(lost)

    with jobs.found.database.transaction():
        assert jobs.found.take(lost)
        assert threads.run_all(using, [take], 30) == [False]
    assert threads.run_all(using, [take], 30) == [False]
    assert ClaimedExecution.objects.using(using).get().process_id == NOBODY
