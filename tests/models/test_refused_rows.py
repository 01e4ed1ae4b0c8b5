"""A row that the database refuses keeps no other from what is to be done with it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import connections

from steady_queue_core import Batch, Unique, limits_rate, schedule_recurring_task, task
from steady_queue_core.configuration import Configuration
from steady_queue_core.conformance.base import limited_job
from steady_queue_core.conformance.threads import holding
from steady_queue_core.dialects import ClaimedJob, Ending, QueueSelector, portable
from steady_queue_core.errors import ProcessExitError
from steady_queue_core.features.rates.starts import RatedStarts
from steady_queue_core.features.unique import starts as started_keys
from steady_queue_core.models import (
    BatchMember,
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    JobBatch,
    Permit,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.processes.base.context import ProcessContext
from steady_queue_core.processes.base.database import QueueDatabase, Unavailable
from steady_queue_core.processes.base.events import Events
from steady_queue_core.processes.base.journal import RunJournal
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.base.registration import ProcessRegistration
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.worker import needed_rows, outcomes
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.needed_rows import shared_by
from steady_queue_core.processes.worker.settlement import Refused, Settlement
from steady_queue_core.schedules import definition as recurring_task

from ..core.driver import Driver
from ..processes.test_dispatcher import dispatcher_of
from .everywhere import Jobs, on_every_database, on_every_server
from .recurrence import HOUR, MINUTE, SECOND, Plan, greet, tasks
from .refusals import refusing


@limits_rate(to=1, per=HOUR, key=lambda key: key)
@task(max_attempts=3)
def paced(key: str) -> None:
    """Start once an hour for each key."""


@task(unique=Unique(key=lambda key: key, until="started"))
def alone(key: str) -> None:
    """Be enqueued once for each key, until it starts."""


class Worker:
    """The main thread of a worker, one step at a time."""

    def __init__(self, using: str) -> None:
        self.jobs, self.driver = Jobs(using), Driver(using)
        self.database, options = QueueDatabase(using), Configuration.Options().resolve()
        context = SimpleNamespace(
            using=using, database=self.database, options=options, stopping=False,
            waiter=SimpleNamespace(wake=lambda: None), events=Events("worker", "worker-2", using),
            journal=RunJournal.create("worker-2", 10, None),
        )  # fmt: skip
        executor, selector = self.driver.executor, QueueSelector.of(["*"])
        self.settlement = Settlement(cast(ProcessContext, context), executor, selector)
        self.settlement.registration = ProcessRegistration(
            self.database, kind="worker", name="worker-2", supervisor_id=None, metadata={},
            interval=options.process_heartbeat_interval, threshold=options.process_alive_threshold,
        )  # fmt: skip
        self.settlement.registration.register()

    def settle(self) -> list[ClaimedJob]:
        """Store what has ended, and claim."""
        return self.settlement.settle_and_claim(10)

    def end(self, *claims: ClaimedJob) -> None:
        """Let jobs end well."""
        for claim in claims:
            outcome = outcomes.released(claim)._replace(ending=Ending.FINISHED)
            self.settlement.add(RunResult(outcome))


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, clear_finished_jobs_after=60, clear_failed_jobs_after=60)


@on_every_database
def test_of_a_dead_process_all_jobs_are_rescued_but_the_one_that_cannot_be(using: str) -> None:
    jobs = Jobs(using)
    claims = jobs.claimed(4)
    bad = claims[0].job_id
    database = QueueDatabase(using)
    rescuer, error = Rescuer(database), ProcessExitError("It ended.")
    with refusing(using, "DELETE ON steady_queue_claimed_executions", f"OLD.job_id = {bad}"):
        with suppress(Unavailable):
            rescuer.rescue_process("worker-1", None, error)
        assert jobs.ids(ClaimedExecution) == [bad]
        assert len(jobs.ids(FailedExecution)) == 3
        assert not database.was_unavailable(0.0)
    rescuer.rescue_process("worker-1", None, error)
    rescuer.rescue_orphans()
    assert jobs.ids(ClaimedExecution) == []


@on_every_database
def test_all_due_jobs_are_dispatched_but_the_one_that_cannot_be(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = Jobs(using)
    bad, *others = jobs.ready(4, delay=timedelta(hours=1))
    past = portable.storable(jobs.present(using) - timedelta(seconds=1))
    ScheduledExecution.objects.using(using).update(due_at=past)
    dispatcher = dispatcher_of(using)
    with refusing(using, "INSERT ON steady_queue_ready_executions", f"NEW.job_id = {bad}"):
        for _ in range(2):
            dispatcher._round()
            assert jobs.ids(ReadyExecution) == others
            # Another one is due while that one is left alone.
            others += jobs.ready(delay=timedelta(hours=1))
            rows = ScheduledExecution.objects.using(using)
            assert rows.exclude(pk=bad).update(due_at=past) == 1
        assert not dispatcher.context.database.was_unavailable(0.0)
    # As if the pause were over.
    vars(jobs.connection).pop("steady_queue_held_up")
    dispatcher._round()
    assert jobs.ids(ReadyExecution) == sorted([bad, *others])
    assert [record.__dict__.get("event") for record in caplog.records] == [
        "dispatcher.not_dispatched"
    ]


class Expired(Jobs):
    """Jobs that have ended long ago, one of which somebody keeps, and another duty."""

    def __init__(self, using: str) -> None:
        super().__init__(using)
        [self.bad, self.other], [self.failed] = self.finished(2), self.failed()
        past = portable.storable(self.present(using) - timedelta(days=1))
        self.all.filter(pk__in=[self.bad, self.other]).update(finished_at=past)
        FailedExecution.objects.using(using).update(created_at=past)
        for _ in range(2):
            self.dialect.enqueue(self.connection, [limited_job()])
        # As if a stranger had taken away the job that held the place.
        ReadyExecution.objects.using(using).all().delete()
        self.dispatcher = dispatcher_of(using)

    def go_on(self) -> None:
        """Look whether a dispatcher does all else in some rounds."""
        for _ in range(40):
            self.dispatcher._round()
        gone = self.all.filter(pk__in=[self.bad, self.other, self.failed])
        assert list(gone.values_list("pk", flat=True)) == [self.bad]
        assert not BlockedExecution.objects.using(self.using).exists()
        assert not self.dispatcher.context.database.was_unavailable(0.0)


@on_every_database
def test_a_row_that_cannot_be_cleared_keeps_a_dispatcher_from_nothing_else(using: str) -> None:
    expired = Expired(using)
    with refusing(using, "DELETE ON steady_queue_jobs", f"OLD.id = {expired.bad}"):
        expired.go_on()


@on_every_server
def test_a_row_that_is_locked_keeps_a_dispatcher_from_nothing_else(using: str) -> None:
    expired = Expired(using)
    bad = expired.all.filter(pk=expired.bad)
    with holding(using, lambda: list(bad.select_for_update()), 30):
        expired.go_on()


@on_every_database
def test_a_semaphore_that_cannot_be_maintained_keeps_no_other_from_it(using: str) -> None:
    jobs = Jobs(using)
    for key in ("bad", "good"):
        for _ in range(2):
            jobs.dialect.enqueue(jobs.connection, [limited_job(key)])
    ReadyExecution.objects.using(using).all().delete()
    dispatcher = dispatcher_of(using)
    with refusing(using, "UPDATE ON steady_queue_semaphores", "NEW.key = 'bad'"):
        dispatcher._round()
        blocked = BlockedExecution.objects.using(using)
        assert list(blocked.values_list("concurrency_key", flat=True)) == ["bad"]


@on_every_database
def test_a_rate_that_is_refused_keeps_no_other_from_its_starts(using: str) -> None:
    for key in ("bad", "good"):
        paced.enqueue(key)
    driver, starts, database = Driver(using), RatedStarts(), QueueDatabase(using)
    claims = driver.claim()
    bad, good = sorted(claim.job_id for claim in claims)
    with refusing(using, "UPDATE ON steady_queue_rates", "NEW.key LIKE '%bad%'"):
        not_yet = starts.not_yet(claims, len(claims), database)
        assert {job_id: each.ending for job_id, each in not_yet.items()} == {bad: Ending.RETRIED}
        # The same, when places are given back.
        starts.withdraw(claims)
        starts.give_back(database)
        [again] = [claim for claim in claims if claim.job_id == good]
        assert starts.not_yet([again], 1, database) == {}
    assert starts.not_yet([claim for claim in claims if claim.job_id == bad], 1, database) == {}
    assert not database.was_unavailable(0.0)


@on_every_database
def test_a_unique_key_that_is_refused_keeps_no_other_job_from_its_start(using: str) -> None:
    for key in ("bad", "good"):
        alone.enqueue(key)
    worker = Worker(using)
    claims = worker.driver.claim()
    bad, _ = sorted(claim.job_id for claim in claims)
    with refusing(using, "DELETE ON steady_queue_unique_keys", f"OLD.job_id = {bad}"):
        assert set(started_keys.not_yet(claims, worker.database)) == {bad}
    assert started_keys.not_yet(claims, worker.database) == {}
    assert not worker.database.was_unavailable(0.0)


@on_every_database
def test_an_outcome_that_is_refused_is_no_outage_of_its_worker(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(using)
    ids = worker.jobs.ready(3)
    claims = worker.settle()
    assert [claim.job_id for claim in claims] == ids
    claims_on = "DELETE ON steady_queue_claimed_executions"
    with refusing(using, claims_on, f"OLD.job_id = {ids[0]}"):
        for claim in claims:
            worker.end(claim)
        with pytest.raises(Refused):
            worker.settle()
        assert list(worker.settlement.held) == [ids[0]]
        worker.settlement._refused._due_at = 0.0
        worker.settlement.recall()
        worker.jobs.ready()
        worker.end(*worker.settle())
        worker.settle()
        assert list(worker.settlement.held) == [ids[0]]
        assert not worker.database.was_unavailable(0.0)
    worker.settlement._refused._due_at = 0.0
    worker.settlement.recall()
    assert not worker.settlement.held
    assert "unavailable" not in caplog.text


@on_every_database
def test_a_schedule_that_is_refused_makes_no_other_late(
    using: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})
    plan = Plan(using)
    schedule_recurring_task("bad", greet, schedule=SECOND)
    schedule_recurring_task("good", greet, schedule=MINUTE)
    plan.begin()
    with refusing(using, "INSERT ON steady_queue_recurring_executions", "NEW.task_key = 'bad'"):
        for _ in range(3):
            # It is known when to look again, and nothing has to rest until then.
            assert plan.pass_by(SECOND) > plan.clock
        start = plan.clock
        plan.pass_by(MINUTE)
        assert (plan.slots("bad"), len(plan.slots("good"))) == ([], 1)
        assert start < plan.slots("good")[0]
    assert not plan.due_times.database.was_unavailable(0.0)
    assert "unavailable" not in caplog.text


@on_every_server
@pytest.mark.parametrize("kind", ["permit", "member", "unknown"])
def test_a_locked_row_holds_up_no_outcome_of_others(
    using: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(using)
    if kind == "unknown":
        monkeypatch.setattr(needed_rows, "needed_by", shared_by)
    if kind != "member":
        worker.jobs.dialect.enqueue(
            worker.jobs.connection, [limited_job(key) for key in ("a", "b", "c")]
        )
    else:
        for _ in range(3):
            with Batch():
                greet.enqueue()
    claims = worker.settle()
    held = claims[0].job_id
    rows = Permit.objects.using(using).filter(pk=held)
    if kind == "member":
        rows = BatchMember.objects.using(using).filter(job_id=held)
    with connections[using].cursor() as cursor:
        is_postgres = connections[using].vendor == "postgresql"
        cursor.execute(
            "SET lock_timeout = '300ms'" if is_postgres else "SET innodb_lock_wait_timeout = 1"
        )
    with holding(using, lambda: list(rows.select_for_update()), 30):
        worker.end(*claims)
        for _ in range(3):
            with suppress(Unavailable, Refused):
                worker.settlement.recall()
                worker.settle()
        assert list(worker.settlement.held) == [held]
        # What is looked for is not waited for a second time.
        aside, refused = worker.settlement._aside, worker.settlement._refused
        found = (refused if kind == "unknown" else aside).results
        assert [each.outcome.job_id for each in found] == [held]
    worker.settlement._aside._due_at = worker.settlement._refused._due_at = 0.0
    worker.settlement.recall()
    worker.settle()
    assert not worker.settlement.held
    connections[using].close()


@on_every_database
def test_a_started_job_whose_end_is_refused_does_not_count_as_not_started(using: str) -> None:
    jobs = Jobs(using)
    [done], [other] = jobs.claimed(), jobs.claimed()
    snapshot = JournalSnapshot(running=frozenset({done.job_id, other.job_id}))
    rescuer, error = Rescuer(QueueDatabase(using)), ProcessExitError("It ended.")
    condition = f"OLD.id = {done.job_id} AND NEW.finished_at IS NOT NULL"
    with refusing(using, "UPDATE ON steady_queue_jobs", condition):
        for _ in range(2):
            with suppress(Unavailable):
                rescuer.rescue_process("worker-1", snapshot, error)
            rescuer.rescue_orphans()
        assert jobs.ids(ClaimedExecution) == [done.job_id]
        assert jobs.ids(FailedExecution) == [other.job_id]
        assert jobs.ids(ReadyExecution) == []
    rescuer.rescue_process("worker-1", snapshot, error)
    assert jobs.ids(FailedExecution) == [done.job_id, other.job_id]


@on_every_database
def test_a_batch_that_is_refused_keeps_no_other_from_its_repair(using: str) -> None:
    with Batch() as bad:
        greet.enqueue()
    with Batch() as good:
        greet.enqueue()
    # As if somebody had deleted the jobs in SQL.
    Jobs(using).all.all().delete()
    dispatcher = dispatcher_of(using)
    batches = JobBatch.objects.using(using)
    with refusing(using, "UPDATE ON steady_queue_batches", f"OLD.id = {bad.id}"):
        dispatcher._round()
        assert list(batches.filter(finished_at=None).values_list("pk", flat=True)) == [bad.id]
    assert batches.filter(pk=good.id).exists()
