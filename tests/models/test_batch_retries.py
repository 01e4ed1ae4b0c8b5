"""Batches that are retried when others have changed what was in them, on every database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core import Batch, BatchResult, Fail, call, chain, task
from steady_queue_core.dialects.database import Database
from steady_queue_core.models import Job, JobBatch, WaitingExecution
from steady_queue_core.models.operations.batch_maintenance import BatchMaintenance, FinishedBatches

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

HOUR = timedelta(hours=1)

failing: set[str] = set()
ran: list[str] = []


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    failing.clear()
    ran.clear()


@task(max_attempts=1)
def work(name: str) -> None:
    ran.append(name)
    if name in failing:
        raise Fail("no stock")


def failed_chain(using: str) -> tuple[Driver, BatchResult, Job]:
    """Return a chain that has ended because its first job has failed, and this job."""
    failing.add("first")
    result = chain(call(work, "first"), call(work, "second")).enqueue()
    driver = Driver(using)
    driver.work()
    result.refresh()
    assert str(result.status) == "failed"
    failing.clear()
    ran.clear()
    return driver, result, Job.objects.using(using).order_by("pk")[0]


def repaired(using: str) -> int:
    return BatchMaintenance(using, Job.objects.using(using)).do()


@on_every_database
def test_a_job_that_was_retried_alone_and_runs_is_waited_for(using: str) -> None:
    driver, result, first = failed_chain(using)
    assert first.retry()
    [claim] = driver.claim()
    assert result.retry() == 1
    assert (str(result.status), result.pending) == ("running", 2)
    assert WaitingExecution.objects.using(using).count() == 1
    driver.settle(driver.run(claim))
    driver.work()
    result.refresh()
    assert (str(result.status), ran) == ("succeeded", ["first", "second"])


@on_every_database
@pytest.mark.parametrize("fails", [False, True])
def test_a_job_that_was_retried_alone_counts_as_it_has_ended(using: str, *, fails: bool) -> None:
    driver, result, first = failed_chain(using)
    assert first.retry()
    driver.work()
    failing.update(["second"] if fails else [])
    assert result.retry() == 1
    driver.work()
    result.refresh()
    assert (result.total, result.failed, ran) == (2, int(fails), ["first", "second"])


@on_every_database
def test_what_waited_for_a_job_that_is_gone_does_not_wait_for_it(using: str) -> None:
    driver, result, first = failed_chain(using)
    first.discard()
    assert result.retry() == 1
    assert repaired(using) == 0
    assert not WaitingExecution.objects.using(using).exists()
    driver.work()
    result.refresh()
    assert (str(result.status), result.failed, ran) == ("failed", 2, [])


@on_every_database
def test_a_batch_that_is_retried_is_waited_for_by_the_one_that_it_is_in(using: str) -> None:
    failing.add("first")
    with Batch() as outer:
        with Batch() as inner:
            work.enqueue("first")
        work.enqueue("second")
    driver = Driver(using)
    first, second = driver.claim()
    driver.settle(driver.run(first))
    outer.refresh()
    assert (outer.pending, outer.failed) == (1, 1)
    failing.clear()
    assert inner.retry() == 1
    driver.settle(driver.run(second))
    outer.refresh()
    assert (str(outer.status), outer.pending, outer.failed) == ("running", 1, 0)
    driver.work()
    outer.refresh()
    assert str(outer.status) == "succeeded"


@on_every_database
def test_a_batch_that_is_retried_does_not_change_one_that_has_ended(using: str) -> None:
    driver, outer, inner = failed_in_another(using)
    assert inner.retry() == 1
    driver.work()
    for batch, status in ((inner, "succeeded"), (outer, "failed")):
        batch.refresh()
        assert str(batch.status) == status


@on_every_database
def test_a_batch_in_another_one_that_was_cleared_is_not_waited_for(using: str) -> None:
    _, outer, inner = failed_in_another(using)
    present = Database.of(using).current_time()
    ended = JobBatch.objects.using(using).filter(pk=inner.id)
    ended.update(finished_at=Database.of(using).storable_time() - 2 * HOUR)
    assert FinishedBatches(using, present - HOUR).clear(10) == 1
    assert outer.retry() == 0
    assert (str(outer.status), outer.pending) == ("failed", 0)


@on_every_database
def test_a_batch_is_cleared_after_the_one_that_it_was_in(using: str) -> None:
    driver, outer, inner = failed_in_another(using)
    assert inner.retry() == 1
    soon = Database.of(using).current_time() + HOUR
    assert FinishedBatches(using, soon).clear(10) == 1
    assert not JobBatch.objects.using(using).filter(pk=outer.id).exists()
    driver.work()
    assert FinishedBatches(using, soon).clear(10) == 1
    assert not JobBatch.objects.using(using).exists()


def failed_in_another(using: str) -> tuple[Driver, Batch, Batch]:
    """Return a batch that has ended because one in it has failed, and this one."""
    failing.add("first")
    with Batch() as outer, Batch() as inner:
        work.enqueue("first")
    driver = Driver(using)
    driver.work()
    outer.refresh()
    assert str(outer.status) == "failed"
    failing.clear()
    return driver, outer, inner
