"""How long jobs are kept that say so themselves, or whose task does: on every database."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from steady_queue_core import Discard, task
from steady_queue_core.compat import TaskResultStatus
from steady_queue_core.conformance import threads
from steady_queue_core.dialects import portable
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import FailedExecution, Job, ReadyExecution, Retention
from steady_queue_core.models.operations.clear import RetainedJobs
from steady_queue_core.models.operations.retry import retry as retry_jobs
from steady_queue_core.processes.base.journal_reader import FinishedEntry
from steady_queue_core.processes.dispatcher import retention
from steady_queue_core.processes.dispatcher.retention import Cleaner

from ..core.driver import Driver
from .everywhere import on_every_database, on_every_server
from .recurrence import tasks

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@task
def add(a: int = 1, b: int = 1) -> int:
    return a + b


@task
def fail() -> None:
    raise LookupError("no")


@task
def discard() -> None:
    raise Discard("nothing to do")


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TASKS = tasks(
        using, clear_finished_jobs_after=2 * DAY, clear_failed_jobs_after=2 * DAY
    )
    monkeypatch.setattr(retention, "BATCH", 2)


def let_time_pass(using: str, by: timedelta) -> None:
    columns: list[tuple[Any, str]] = [
        (Job, "finished_at"), (FailedExecution, "created_at"), (Retention, "expires_at")
    ]  # fmt: skip
    for model, column in columns:
        for row in model.objects.using(using).exclude(**{column: None}):
            setattr(row, column, getattr(row, column) - by)
            row.save()


def clear(using: str) -> None:
    """Let a dispatcher make a pass."""
    cleaner = Cleaner(using)
    while cleaner.clean(connections[using], dialect_for(using)) == 0.0:
        pass


def present(using: str) -> Any:
    return dialect_for(using).current_time(connections[using])


def ids(using: str, model: Any) -> list[int]:
    return sorted(model.objects.using(using).values_list("pk", flat=True))


def left(using: str) -> list[str]:
    return [str(pk) for pk in ids(using, Job)]


def rows(using: str) -> int:
    return int(Retention.objects.using(using).count())


@on_every_database
def test_each_job_is_kept_for_its_own_time(using: str) -> None:
    driver = Driver(using)
    kinds = [add, fail]
    names = ["retention", "failure_retention"]
    short = [k.using(**{n: HOUR}).enqueue() for k, n in zip(kinds, names, strict=True)]
    long = [k.using(**{n: 9 * DAY}).enqueue() for k, n in zip(kinds, names, strict=True)]
    always = [k.using(**{n: "forever"}).enqueue() for k, n in zip(kinds, names, strict=True)]
    other = [k.using(**{n: HOUR}).enqueue() for k, n in zip(kinds, names[::-1], strict=True)]
    plain = [kind.enqueue() for kind in kinds]
    driver.work()
    assert rows(using) == 6
    everything = [each.id for each in [*short, *long, *always, *other, *plain]]
    for passed, gone in (
        (timedelta(0), []), (2 * HOUR, short), (2 * DAY, [*other, *plain]), (9 * DAY, long),
    ):  # fmt: skip
        let_time_pass(using, passed)
        clear(using)
        everything = [each for each in everything if each not in {one.id for one in gone}]
        assert left(using) == everything, passed
    assert ids(using, Retention) == [int(each.id) for each in always]
    assert ids(using, FailedExecution) == [int(always[1].id)]
    # Nor does an operator delete them by the way.
    later, jobs = present(using) + HOUR, Job.objects.using(using)
    assert jobs.clear_finished_in_batches(finished_before=later) == 0
    assert left(using) == [each.id for each in always]


@on_every_database
def test_a_job_that_is_not_to_be_kept_is_deleted_with_its_success(
    using: str, settings: Any
) -> None:
    driver = Driver(using)
    brief = [each.using(retention=timedelta(0)) for each in (add, discard)]
    for each in brief:
        each.enqueue()
    failed = fail.using(retention=timedelta(0)).enqueue()
    driver.work()
    assert left(using) == [failed.id]
    # The other way round, a backend that keeps no successful job keeps those that say so.
    settings.TASKS = tasks(using, preserve_finished_jobs=False)
    driver = Driver(using)
    kept = [each.using(retention=HOUR).enqueue() for each in (add, discard)]
    add.enqueue()
    driver.work()
    assert left(using) == [failed.id, *(each.id for each in kept)]
    assert rows(using) == 2
    kept[1].refresh()
    assert kept[1].metadata == {"discarded": "nothing to do"}
    let_time_pass(using, 2 * HOUR)
    clear(using)
    assert left(using) == [failed.id]


@on_every_database
def test_a_failure_may_be_gone_with_the_next_pass(using: str) -> None:
    driver = Driver(using)
    result = fail.using(failure_retention=timedelta(0)).enqueue()
    driver.finish(result)
    assert result.status is TaskResultStatus.FAILED
    clear(using)
    assert left(using) == []
    assert (rows(using), ids(using, FailedExecution)) == (0, [])


@on_every_database
def test_a_failed_job_that_is_retried_starts_over(using: str) -> None:
    driver = Driver(using)
    result = fail.using(failure_retention=HOUR).enqueue()
    driver.work()
    assert Job.objects.using(using).retry_failed() == 1
    assert rows(using) == 0
    let_time_pass(using, DAY)
    clear(using)
    assert left(using) == [result.id]
    driver.work()
    assert rows(using) == 1
    assert Job.objects.using(using).get().discard() is None
    assert (left(using), rows(using)) == ([], 0)


@on_every_database
def test_a_job_that_is_cancelled_or_expires_is_kept_like_a_failure(using: str) -> None:
    driver = Driver(using)
    kept = add.using(failure_retention="forever", expires=HOUR)
    cancelled, expired = kept.enqueue(), kept.enqueue()
    plain = add.using(metadata={"order": 1}).enqueue()
    for each in (cancelled, plain):
        assert each.cancel()
    for job in Job.objects.using(using).filter(pk=expired.id):
        job.enqueued_at -= DAY
        job.save()
    driver.work()
    let_time_pass(using, 30 * DAY)
    clear(using)
    assert left(using) == [cancelled.id, expired.id]


@on_every_database
def test_what_a_killed_worker_had_noted_is_kept_as_long(using: str) -> None:
    driver = Driver(using)
    add.using(retention=HOUR).enqueue(1, 2)
    [claim] = driver.claim()
    done = driver.run(claim).outcome
    assert done.sequel is not None
    assert done.sequel.is_implied
    entry = FinishedEntry.read(FinishedEntry.of(done))
    driver.settle(driver.executor._attempt_of(claim).journaled(entry))
    [kept] = Retention.objects.using(using).all()
    assert kept.pk == claim.job_id
    assert Job.objects.using(using).get().return_value == "3"


@on_every_database
def test_a_row_whose_job_is_gone_goes_too(using: str) -> None:
    driver = Driver(using)
    for _ in range(3):
        add.using(retention=HOUR).enqueue()
    driver.work()
    Job.objects.using(using).all()._raw_delete(using)
    assert rows(using) == 3
    let_time_pass(using, DAY)
    clear(using)
    assert rows(using) == 0
    # Django's own way of deleting takes it along.
    add.using(retention=HOUR).enqueue()
    driver.work()
    Job.objects.using(using).all().delete()
    assert rows(using) == 0


@on_every_database
def test_a_row_of_a_job_that_has_not_ended_deletes_nothing(using: str) -> None:
    result = add.enqueue()
    past = portable.storable(present(using) - DAY)
    Retention.objects.using(using).create(job_id=int(result.id), expires_at=past)
    clear(using)
    assert left(using) == [result.id]
    assert rows(using) == 0


@on_every_server
def test_a_failed_job_that_is_retried_while_it_is_cleared_stays(using: str) -> None:
    driver = Driver(using)
    kept = fail.using(failure_retention=HOUR)
    retried = int([kept.enqueue() for _ in range(3)][1].id)
    driver.work()
    sweep = RetainedJobs(Job.objects.using(using), present(using) + DAY)
    locked, done = threading.Event(), threading.Event()

    def retry() -> None:
        with transaction.atomic(using=using):
            assert retry_jobs(Job.objects.using(using), [retried]) == 1
            locked.set()
            assert done.wait(20)

    retrying = threads.start(using, retry)
    assert locked.wait(20)
    assert sweep.clear(10) == 2
    done.set()
    retrying.result(20)
    assert ids(using, Job) == ids(using, ReadyExecution) == [retried]
    assert rows(using) == 0


@on_every_server
def test_a_failed_job_that_is_about_to_be_retried_is_left_alone(using: str) -> None:
    """Whoever retries it has locked the failure so far."""
    driver = Driver(using)
    results = [fail.using(failure_retention=HOUR).enqueue() for _ in range(3)]
    driver.work()
    rescued = int(results[1].id)

    def lock() -> None:
        found = FailedExecution.objects.using(using).filter(pk=rescued)
        assert list(dialect_for(using).lock_rows(connections[using], found, wait=True))

    with threads.holding(using, lock, 20):
        sweep = RetainedJobs(Job.objects.using(using), present(using) + DAY)
        assert sweep.clear(10) == 2
    assert ids(using, Job) == ids(using, FailedExecution) == ids(using, Retention) == [rescued]
