"""What a dispatcher clears beside its work."""

from __future__ import annotations

import threading
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from steady_queue_core import recurring, schedule_recurring_task, unschedule_recurring_task
from steady_queue_core.conformance import threads
from steady_queue_core.dialects import portable
from steady_queue_core.models import FailedExecution, Job, ReadyExecution, RecurringExecution
from steady_queue_core.models.operations.clear import FailedJobs, PastRuns
from steady_queue_core.models.operations.retry import retry as retry_jobs
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.dispatcher import retention
from steady_queue_core.processes.dispatcher.retention import Cleaner, expired
from steady_queue_core.processes.scheduler.due_times import DueTimes
from steady_queue_core.processes.scheduler.recurring_schedule import RecurringSchedule
from steady_queue_core.schedules import definition as recurring_task

from .everywhere import Jobs, on_every_database, on_every_server
from .recurrence import HOUR, Recurrence, greet

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"


def tasks(using: str, **periods: timedelta) -> dict[str, Any]:
    return {
        alias: {
            "BACKEND": BACKEND,
            "QUEUES": [],
            "OPTIONS": {"database": using, "clear_finished_jobs_after": period},
        }
        for alias, period in periods.items()
    }


@on_every_database
def test_each_backends_jobs_are_kept_for_its_own_time(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks(using, default=timedelta(hours=1), archive=timedelta(days=30))
    monkeypatch.setattr(retention, "BATCH", 2)
    jobs = Jobs(using)
    short = jobs.finished(5)
    long = jobs.finished(3, backend_name="archive")
    unknown = jobs.finished(2, backend_name="gone")
    young, failed = jobs.finished(1), jobs.failed(1)
    old = [*short, *long, *unknown, *failed]
    present = jobs.dialect.current_time(jobs.connection)
    jobs.all.filter(pk__in=old).update(finished_at=portable.storable(present - timedelta(days=2)))
    cleaner = Cleaner(using)

    rounds = 1
    while cleaner.clean(jobs.connection, jobs.dialect) == 0.0:
        rounds += 1

    assert jobs.ids(Job) == sorted([*long, *unknown, *young, *failed])
    assert rounds > 3
    assert 0 < cleaner.clean(jobs.connection, jobs.dialect) <= retention.INTERVAL


@on_every_database
def test_slots_are_cleared_but_for_the_last_of_each_schedule_that_exists(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})
    settings.TASKS = tasks(using, default=timedelta(0))
    settings.STEADY_QUEUE = {"scheduler": {"dynamic_tasks_enabled": True}}
    recurring(schedule="@yearly", key="yearly")(greet)
    for key in ("daily", "weekly", "once"):
        schedule_recurring_task(key, greet, schedule=HOUR)
    unschedule_recurring_task("once")
    jobs = Jobs(using)
    present = jobs.dialect.current_time(jobs.connection)
    slots = {"daily": (4, 3, 2, 0), "weekly": (8,), "yearly": (400, 35), "once": (9, 8)}
    for key, days in slots.items():
        for age in days:
            record_run(using, key, present - timedelta(days=age))

    for _, sweep in expired(using, present):
        sweep.clear(100)

    left = RecurringExecution.objects.using(using).order_by("task_key")
    ages = [(row.task_key, (present - portable.aware(row.run_at)).days) for row in left]
    assert ages == [("daily", 0), ("weekly", 8), ("yearly", 35)]


@on_every_database
def test_the_last_slots_of_schedules_that_are_gone_are_cleared_together(using: str) -> None:
    present = Jobs(using).present(using)
    for number in range(50):
        record_run(using, f"gone {number}", present - timedelta(days=2))
    sweep = PastRuns(using, present - timedelta(days=1), [])

    with CaptureQueriesContext(connections[using]) as queries:
        assert sweep.clear(100) == 50

    assert len(queries) < 10


def record_run(using: str, key: str, instant: datetime) -> None:
    """Store the record of a run at ``instant``."""
    run_at = portable.storable(instant)
    RecurringExecution.objects.using(using).create(task_key=key, run_at=run_at, created_at=run_at)


@on_every_database
def test_failed_jobs_are_kept_unless_their_backend_says_for_how_long(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured = tasks(using, default=timedelta(days=30), archive=timedelta(days=30))
    configured["archive"]["OPTIONS"]["clear_failed_jobs_after"] = 3600
    settings.TASKS = configured
    monkeypatch.setattr(retention, "BATCH", 2)
    jobs = Jobs(using)
    kept, unknown = jobs.failed(3), jobs.failed(1, backend_name="gone")
    jobs.failed(5, backend_name="archive")
    finished = jobs.finished(2, backend_name="archive")
    [retried] = jobs.failed(backend_name="archive")
    past = portable.storable(jobs.present(using) - timedelta(days=2))
    FailedExecution.objects.using(using).update(created_at=past)
    young = jobs.failed(2, backend_name="archive")
    assert jobs.all.get(pk=retried).retry()

    assert cleared_by(Cleaner(using), jobs) > 2

    assert jobs.ids(Job) == sorted([*kept, *unknown, *finished, retried, *young])
    assert jobs.ids(FailedExecution) == sorted([*kept, *unknown, *young])

    configured = deepcopy(configured)
    configured["default"]["OPTIONS"]["clear_failed_jobs_after"] = timedelta(days=1)
    settings.TASKS = configured  # Those of no backend go with those that are kept longest.
    cleared_by(Cleaner(using), jobs)
    assert jobs.ids(FailedExecution) == young


@on_every_server
def test_a_failed_job_that_is_retried_while_it_is_cleared_stays(using: str) -> None:
    jobs = Jobs(using)
    failed, [retried] = jobs.failed(2), jobs.failed(1)
    sweep = FailedJobs(jobs.all.all(), jobs.present(using) + timedelta(hours=1))
    locked, done = threading.Event(), threading.Event()

    def retry() -> None:
        with transaction.atomic(using=using):
            assert retry_jobs(Job.objects.using(using), [retried]) == 1
            locked.set()
            assert done.wait(20)

    retrying = threads.start(using, retry)
    assert locked.wait(20)
    assert sweep.clear(10) == len(failed)
    done.set()
    retrying.result(20)
    assert jobs.ids(Job) == jobs.ids(ReadyExecution) == [retried]


@on_every_database
def test_what_stays_is_looked_at_once_and_again_after_a_while(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks(using, default=timedelta(hours=1))
    monkeypatch.setattr(retention, "BATCH", 2)
    jobs = Jobs(using)
    failed = jobs.failed(9)
    past = portable.storable(jobs.present(using) - timedelta(days=2))
    jobs.all.update(finished_at=past)
    cleaner = Cleaner(using)
    batches = [cleared_by(cleaner, jobs) for _ in range(2)]
    assert batches[0] > batches[1]

    # One that was committed late has an instant that was passed already.
    [late] = jobs.finished(1)
    jobs.all.filter(pk=late).update(finished_at=past - timedelta(hours=1))
    cleared_by(cleaner, jobs)
    assert late in jobs.ids(Job)
    monkeypatch.setattr(retention, "FRESH_START", 0.0)
    cleaner._next_start = 0.0
    cleared_by(cleaner, jobs)
    assert jobs.ids(Job) == failed


def cleared_by(cleaner: Cleaner, jobs: Jobs) -> int:
    """Let one pass clear all that it does; return how many batches it took."""
    cleaner._next_pass, rounds = 0.0, 1
    while cleaner.clean(jobs.connection, jobs.dialect) == 0.0:
        rounds += 1
    return rounds


@on_every_database
def test_a_scheduler_that_lags_behind_enqueues_no_slot_again(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while it makes up for what it may, nor after it was stopped for longer."""
    monkeypatch.setattr(recurring_task, "_registry", {})
    settings.TASKS = tasks(using, default=timedelta(0))
    settings.STEADY_QUEUE = {"scheduler": {"dynamic_tasks_enabled": True}}
    recurrence = Recurrence(using)
    present = recurrence.present()
    schedule_recurring_task("k", greet, schedule=HOUR, catch_up=timedelta(days=3))
    recurrence.since("k", present - timedelta(days=30))

    def scheduler(began: datetime) -> DueTimes:
        due_times = DueTimes(QueueDatabase(using), RecurringSchedule(using, dynamic=True))
        due_times.refresh(began)
        return due_times

    def work(due_times: DueTimes) -> None:
        while (due := due_times.enqueue_due(present)) is not None and due <= present:
            pass

    ahead, *behind = (scheduler(present - timedelta(days=days, minutes=1)) for days in (3, 2.9, 5))
    work(ahead)
    enqueued = len(recurrence.jobs())
    assert enqueued >= 72
    for due_times in behind:
        for _, sweep in expired(using, present):
            while not sweep.exhausted:
                sweep.clear(100)
        work(due_times)
    # Of those that finished, the slots are all that says so.
    assert len(recurrence.jobs()) == enqueued
