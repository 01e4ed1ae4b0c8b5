"""Batches: what belongs together, and what follows when all of it has ended, on every database."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from steady_queue_core import (
    AlreadyFinished,
    Batch,
    BatchDoesNotExist,
    Discard,
    Fail,
    Unique,
    call,
    chain,
    enqueue_many,
    limits_concurrency,
    task,
)
from steady_queue_core.compat import InvalidTask, TaskResultStatus
from steady_queue_core.dialects import portable
from steady_queue_core.dialects.database import Database
from steady_queue_core.models import (
    BatchMember,
    FailedExecution,
    Job,
    JobBatch,
    ReadyExecution,
)
from steady_queue_core.models.operations.batch_maintenance import BatchMaintenance, FinishedBatches
from steady_queue_core.models.operations.clear import FailedJobs, FinishedJobs, RetainedJobs

from ..core.driver import Driver
from ..processes.waiting import wait_for
from .everywhere import on_every_database
from .recurrence import tasks

HOUR = timedelta(hours=1)

told: list[Any] = []


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    told.clear()


@task(max_attempts=1)
def work(number: int = 0, how: str = "") -> int:
    if how == "fail":
        raise Fail("no stock")
    if how == "discard":
        raise Discard("nobody wants it")
    return number


@task(takes_context=True)
def tell(context: Any, name: str = "") -> None:
    batch = context.batch
    told.append((name, batch.id, str(batch.status), batch.completed, batch.failed, batch.total))


@task(takes_context=True)
def grow(context: Any, count: int) -> None:
    with context.batch:
        for number in range(count):
            work.enqueue(number)


@task(takes_context=True)
def grow_later(context: Any) -> None:
    with context.batch:
        context.enqueue(work, 1)


@task
async def coroutine() -> None:
    """Do nothing."""


@limits_concurrency(key="one", to=1)
@task
def limited(number: int = 0) -> None:
    """Do nothing."""


@limits_concurrency(key="one", to=1, on_conflict="discard")
@task
def dropped(number: int = 0) -> None:
    """Do nothing."""


@task(unique=Unique(key="one"))
def unique() -> None:
    """Do nothing."""


def telling(**changes: Any) -> dict[str, Any]:
    """Return callbacks that tell of themselves."""
    names = ("on_success", "on_failure", "on_finish")
    return {name: call(tell, name.removeprefix("on_")) for name in names} | changes


def broken(batch: Batch) -> None:
    with batch:
        work.enqueue(1)
        raise LookupError


def members(using: str) -> Any:
    return BatchMember.objects.using(using)


def names() -> list[str]:
    return [each[0] for each in told]


@on_every_database
def test_a_batch_ends_with_its_last_job_and_enqueues_its_callbacks(using: str) -> None:
    with Batch("import", metadata={"file": 7}, **telling()) as batch:
        results = [work.enqueue(1), work.enqueue(2)]
        results += enqueue_many([call(work, 3), call(coroutine)])
    assert (batch.status, batch.total, batch.pending) == ("running", 4, 4)
    assert (batch.description, batch.metadata) == ("import", {"file": 7})
    Driver(using).work()
    batch.refresh()
    assert (batch.status, batch.completed, batch.failed, batch.pending) == ("succeeded", 4, 0, 0)
    assert batch.finished_at is not None
    assert batch.finished_at >= batch.created_at
    assert told == [
        ("success", batch.id, "succeeded", 4, 0, 4), ("finish", batch.id, "succeeded", 4, 0, 4)
    ]  # fmt: skip
    assert [result.id for result in batch.results()] == [result.id for result in results]
    assert [result.return_value for result in batch.results()] == [1, 2, 3, None]


@on_every_database
def test_a_failed_job_makes_the_batch_fail_once_all_have_ended(using: str) -> None:
    with Batch(**telling()) as batch:
        enqueue_many([call(work, 1), call(work, 2, "fail"), call(work, 3, "discard")])
    driver = Driver(using)
    for claim in driver.claim(limit=2):
        driver.settle(driver.run(claim))
    batch.refresh()
    assert (batch.status, batch.completed, batch.failed, told) == ("running", 1, 1, [])
    assert (batch.progress.done, batch.progress.total) == (2, 3)
    driver.work()
    batch.refresh()
    assert (batch.status, batch.completed, batch.failed) == ("failed", 2, 1)
    assert names() == ["failure", "finish"]


@on_every_database
def test_an_empty_batch_ends_at_once(using: str) -> None:
    with Batch(**telling()) as batch:
        pass
    assert (batch.status, batch.total, batch.progress.total) == ("succeeded", 0, None)
    Driver(using).work()
    assert names() == ["success", "finish"]


@on_every_database
def test_nothing_is_stored_of_a_block_that_raises(using: str) -> None:
    with pytest.raises(LookupError):
        broken(Batch(**telling()))
    assert not Job.objects.using(using).exists()
    assert not JobBatch.objects.using(using).exists()
    with transaction.atomic(using=using):
        kept = work.enqueue(2)
        with pytest.raises(LookupError):
            broken(Batch())
        with Batch() as batch:
            work.enqueue(4)
    assert Job.objects.using(using).filter(pk=kept.id).exists()
    assert (Job.objects.using(using).count(), batch.total) == (2, 1)
    outside = work.enqueue(5)
    assert not members(using).filter(job_id=int(outside.id)).exists()


@on_every_database
def test_a_batch_takes_more_until_it_has_ended(using: str) -> None:
    with Batch(**telling()) as batch:
        grow.enqueue(3)
    again = Batch.get(batch.id)
    assert [result.task for result in again.add([call(work, 9)])] == [work]
    Driver(using).work()
    again.refresh()
    assert (again.status, again.total) == ("succeeded", 5)
    assert names() == ["success", "finish"]
    for stale in (batch, again):
        with pytest.raises(AlreadyFinished, match=f"Batch {batch.id} takes no more jobs"), stale:
            work.enqueue(1)
        with pytest.raises(AlreadyFinished):
            stale.add([call(work, 1)])
    with transaction.atomic(using=using):
        with pytest.raises(AlreadyFinished), batch:
            pass
        work.enqueue(6)
    assert Job.objects.using(using).filter(finished_at=None).count() == 1


@on_every_database
def test_what_the_last_job_leaves_to_its_outcome_belongs_to_the_batch(using: str) -> None:
    with Batch(**telling()) as batch:
        grow_later.enqueue()
    Driver(using).work()
    batch.refresh()
    assert (batch.total, batch.status, names()) == (2, "succeeded", ["success", "finish"])


@on_every_database
def test_a_batch_within_a_batch_is_one_member(using: str) -> None:
    with Batch("outer", **telling(on_finish=None)) as outer:
        work.enqueue(1)
        with Batch("inner", on_finish=call(tell, "inner")) as inner:
            enqueue_many([call(work, 2), call(work, 3, "fail")])
    assert (outer.total, inner.total) == (2, 2)
    Driver(using).work()
    outer.refresh()
    inner.refresh()
    assert (outer.status, outer.failed, inner.status) == ("failed", 1, "failed")
    assert sorted(names()) == ["failure", "inner"]
    job, nested = outer.results()
    assert (job.return_value, nested.id, nested.description) == (1, inner.id, "inner")


@on_every_database
def test_cancelling_ends_what_waits_and_takes_no_more(using: str) -> None:
    with Batch(**telling()) as batch:
        enqueue_many([call(work, number) for number in range(3)])
        work.using(run_after=HOUR).enqueue(9)
        with Batch() as inner:
            work.enqueue(10)
    driver = Driver(using)
    driver.settle(driver.run(driver.claim(limit=1)[0]))
    assert batch.cancel()
    assert (batch.status, batch.completed, batch.failed) == ("cancelled", 1, 4)
    inner.refresh()
    assert inner.status == "cancelled"
    assert not batch.cancel()
    with pytest.raises(AlreadyFinished):
        batch.add([call(work)])
    driver.work()
    assert names() == ["failure", "finish"]


@on_every_database
def test_a_cancelled_batch_waits_for_its_running_jobs(using: str) -> None:
    with Batch(**telling()) as batch:
        enqueue_many([call(work, 1), call(work, 2)])
    driver = Driver(using)
    [claim] = driver.claim(limit=1)
    assert batch.cancel()
    assert (batch.status, batch.pending) == ("running", 1)
    with pytest.raises(AlreadyFinished):
        batch.add([call(work)])
    driver.settle(driver.run(claim))
    batch.refresh()
    assert (batch.status, batch.completed, batch.failed) == ("cancelled", 1, 1)


@on_every_database
@pytest.mark.parametrize("how", ["single", "bulk"])
def test_discarded_jobs_count_as_completed(using: str, how: str) -> None:
    with Batch(**telling()) as batch:
        enqueue_many([call(work, 1), call(work, 2)])
    jobs = Job.objects.using(using).filter(task_path=work.module_path)
    if how == "bulk":
        assert jobs.discard() == 2
    else:
        for job in list(jobs):
            job.discard()
    batch.refresh()
    assert (batch.status, batch.completed, batch.failed, batch.total) == ("succeeded", 2, 0, 2)
    assert batch.results() == []
    Driver(using).work()
    assert names() == ["success", "finish"]


@on_every_database
def test_a_job_that_is_retried_by_hand_is_pending_again(using: str) -> None:
    with Batch(**telling()) as batch:
        enqueue_many([call(work, 1, "fail"), call(work, 2)])
    driver = Driver(using)
    [first] = driver.claim(limit=1)
    driver.settle(driver.run(first))
    batch.refresh()
    assert batch.failed == 1
    assert Job.objects.using(using).get(pk=first.job_id).retry()
    batch.refresh()
    assert (batch.failed, batch.pending) == (0, 2)
    driver.work()
    batch.refresh()
    assert (batch.status, batch.failed) == ("failed", 1)
    # The batch has ended: its callbacks do not come twice.
    assert Job.objects.using(using).get(pk=first.job_id).retry()
    driver.work()
    batch.refresh()
    assert (batch.failed, names()) == (1, ["failure", "finish"])


@on_every_database
def test_limited_and_dropped_and_unique_calls(using: str) -> None:
    other = unique.enqueue()
    with Batch(on_success=limited) as batch:
        limited.enqueue(1)
        dropped.enqueue(2)
        assert dropped.enqueue(3).discarded
        unique.enqueue()
        unique.enqueue()
    assert batch.total == 2
    assert not members(using).filter(job_id=int(other.id)).exists()
    driver = Driver(using)
    driver.work()
    batch.refresh()
    assert batch.status == "succeeded"

    def dispatched() -> list[Any]:
        driver.dispatch()
        return driver.work()

    # The dispatcher gives it its permit, a moment after it was stored.
    [callback] = wait_for(dispatched, 5, "the callback")
    assert callback.outcome.ending.value == "finished"


@on_every_database
def test_jobs_are_kept_as_long_as_their_batch_goes_on(using: str) -> None:
    with Batch() as batch:
        enqueue_many([call(work, 1), call(work, 2, "fail"), call(work, 3)])
    driver = Driver(using)
    for claim in driver.claim(limit=2):
        driver.settle(driver.run(claim))
    jobs = Job.objects.using(using)
    later = Driver(using).clock.now() + HOUR
    assert FinishedJobs(jobs.all(), later).clear(10) == 0
    assert FailedJobs(jobs.all(), later).clear(10) == 0
    driver.work()
    assert FinishedJobs(jobs.all(), later).clear(10) == 2
    assert FailedJobs(jobs.all(), later).clear(10) == 1
    batch.refresh()
    assert (batch.total, batch.results()) == (3, [])


@on_every_database
def test_jobs_with_a_retention_of_their_own_are_kept_as_long_as_well(using: str) -> None:
    soon = timedelta(seconds=1)
    kept = work.using(retention=soon, failure_retention=soon)
    with Batch() as batch:
        enqueue_many([call(kept, 1), call(kept, 2, "fail"), call(work, 3)])
    driver = Driver(using)
    for claim in driver.claim(limit=2):
        driver.settle(driver.run(claim))
    jobs, later = Job.objects.using(using), driver.clock.now() + HOUR
    assert RetainedJobs(jobs.all(), later).clear(10) == 0
    assert len(batch.results()) == 3
    driver.work()
    assert RetainedJobs(jobs.all(), later).clear(10) == 2
    assert len(batch.results()) == 1


@on_every_database
def test_jobs_that_are_not_preserved_count_as_well(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, preserve_finished_jobs=False)
    with Batch(**telling()) as batch:
        enqueue_many([call(work, 1), call(work, 2)])
    Driver(using).work()
    batch.refresh()
    assert (batch.status, batch.completed, names()) == ("succeeded", 2, ["success", "finish"])


@on_every_database
def test_calls_that_wait_for_the_commit_are_stored_with_their_batch(using: str) -> None:
    with Batch() as batch:
        result = work.using(enqueue_on_commit=True).enqueue(1)
        assert result.id
    assert batch.total == 1


@on_every_database
def test_waiting_for_a_batch(using: str) -> None:
    with Batch() as batch:
        work.enqueue(1)
        with pytest.raises(TransactionManagementError, match="inside a transaction"):
            Batch.get(batch.id).wait(1)
    with pytest.raises(TimeoutError, match=r"has not ended within 0 s: 1 of 1 members"):
        batch.wait(0)
    Driver(using).work()
    assert batch.wait(timedelta(seconds=5)).status == "succeeded"
    JobBatch.objects.using(using).all().delete()
    with pytest.raises(BatchDoesNotExist):
        batch.wait(1)


@on_every_database
def test_coroutines_open_batches_without_a_transaction(using: str) -> None:
    async def enqueue() -> Batch:
        async with Batch(**telling()) as batch:
            await work.aenqueue(1)
            assert not connections[using].in_atomic_block
        await batch.aadd([call(work, 2)])
        return batch

    async def fail() -> None:
        async with Batch(on_finish=call(tell, "broken")):
            await work.aenqueue(1)
            raise LookupError

    batch = async_to_sync(enqueue)()
    Driver(using).work()
    async_to_sync(batch.arefresh)()
    assert (batch.status, batch.completed) == ("succeeded", 2)
    assert len(async_to_sync(batch.aresults)()) == 2
    with pytest.raises(LookupError):
        async_to_sync(fail)()
    Driver(using).work()
    assert names() == ["success", "finish", "broken"]
    assert told[-1][2] == "cancelled"


@on_every_database
def test_an_unsuccessful_status_shows_in_results(using: str) -> None:
    with Batch() as batch:
        work.enqueue(1, "fail")
    Driver(using).work()
    [result] = batch.results()
    assert result.status == TaskResultStatus.FAILED
    assert FailedExecution.objects.using(using).count() == 1


@task(max_attempts=1)
def moody() -> str:
    if moods and moods.pop(0):
        raise LookupError
    return "well"


moods: list[bool] = []


@on_every_database
def test_a_batch_is_retried_as_a_whole(using: str) -> None:
    moods[:] = [True, True]
    with Batch(**telling()) as outer:
        enqueue_many([call(moody), call(work, 1)])
        with Batch(on_finish=call(tell, "inner")) as inner:
            enqueue_many([call(moody), call(work, 2)])
    driver = Driver(using)
    driver.work()
    outer.refresh()
    assert (outer.status, outer.failed, sorted(names())) == (
        "failed", 2, ["failure", "finish", "inner"]
    )  # fmt: skip
    told.clear()
    assert outer.retry() == 2
    assert (outer.status, outer.failed, outer.pending) == ("running", 0, 2)
    driver.work()
    outer.refresh()
    inner.refresh()
    assert (outer.status, inner.status) == ("succeeded", "succeeded")
    assert sorted(names()) == ["finish", "inner", "success"]
    assert outer.retry() == 0
    assert outer.status == "succeeded"


@on_every_database
def test_a_cancelled_batch_is_retried(using: str) -> None:
    with Batch(**telling()) as batch:
        enqueue_many([call(work, 1), call(work, 2)])
    batch.cancel()
    assert (batch.status, batch.retry(), batch.status) == ("cancelled", 2, "running")
    Driver(using).work()
    batch.refresh()
    assert (batch.status, batch.completed) == ("succeeded", 2)
    assert names() == ["failure", "finish", "success", "finish"]


def repair(using: str) -> int:
    return BatchMaintenance(using, Job.objects.using(using)).do()


@on_every_database
def test_what_others_have_damaged_is_repaired(using: str) -> None:
    with Batch(**telling()) as batch:
        results = enqueue_many([call(work, number) for number in range(4)])
    gone, ended, failed, _ = (int(result.id) for result in results)
    jobs = Job.objects.using(using)
    assert repair(using) == 0
    jobs.filter(pk=gone)._raw_delete(using)
    ReadyExecution.objects.using(using).filter(pk__lte=failed).delete()
    present = Database.of(using).storable_time()
    jobs.filter(pk__in=[ended, failed]).update(finished_at=present)
    FailedExecution.objects.using(using).create(
        job_id=failed, created_at=present, exception_class="a.B", message=""
    )
    assert repair(using) == 3
    batch.refresh()
    assert (batch.status, batch.completed, batch.failed, batch.pending) == ("running", 2, 1, 1)
    members(using).filter(batch_id=batch.id).update(state=1)
    assert repair(using) == 1
    batch.refresh()
    assert batch.status == "succeeded"
    assert repair(using) == 0


@pytest.mark.parametrize("end", ["sweep", "cancel"])
@on_every_database
def test_members_whose_jobs_or_batches_were_deleted_by_the_orm_end(using: str, end: str) -> None:
    with Batch(**telling()) as batch:
        job = work.enqueue(1)
        with Batch() as nested:
            work.enqueue(2)
    Job.objects.using(using).get(pk=job.id).delete()
    JobBatch.objects.using(using).get(pk=nested.id).delete()
    if end == "sweep":
        assert repair(using) == 2
    else:
        assert batch.cancel()
    Driver(using).work()
    batch.refresh()
    status = "succeeded" if end == "sweep" else "cancelled"
    assert (batch.status, batch.pending, batch.completed) == (status, 0, 2)
    assert names() == ["success" if end == "sweep" else "failure", "finish"]
    assert repair(using) == 0


@on_every_database
def test_a_chain_ends_of_which_a_step_was_deleted_by_the_orm(using: str) -> None:
    steps = chain(call(work, 1), call(work, 2)).enqueue()
    Job.objects.using(using).order_by("pk")[0].delete()
    assert repair(using) == 1
    Driver(using).work()
    steps.refresh()
    assert (str(steps.status), steps.failed) == ("failed", 1)
    assert repair(using) == 0


@on_every_database
def test_a_batch_is_started_whose_block_was_broken_off(using: str) -> None:
    with Batch(**telling()) as batch:
        work.enqueue(1)
    rows = JobBatch.objects.using(using)
    rows.update(started_at=None)
    Driver(using).work()
    assert (repair(using), told) == (0, [])
    rows.update(created_at=portable.storable(Database.of(using).current_time() - 2 * HOUR))
    assert repair(using) == 1
    Driver(using).work()
    batch.refresh()
    assert (batch.status, names()) == ("succeeded", ["success", "finish"])


@on_every_database
def test_batches_are_cleared_with_their_members(using: str) -> None:
    with Batch() as outer:
        with Batch() as inner:
            enqueue_many([call(work, number) for number in range(3)])
        later = work.using(run_after=HOUR).enqueue()
    Driver(using).work()
    soon = Database.of(using).current_time() + HOUR
    inner.refresh()
    assert (inner.status, FinishedBatches(using, soon).clear(10)) == ("succeeded", 0)
    assert later.cancel()
    assert FinishedBatches(using, soon - 2 * HOUR).clear(10) == 0
    assert FinishedBatches(using, soon).clear(10) == 2
    assert not members(using).exists()
    with pytest.raises(BatchDoesNotExist):
        outer.refresh()


@on_every_database
def test_a_batch_is_kept_until_its_callbacks_have_ended(using: str) -> None:
    with Batch(on_finish=call(tell, "finish"), on_success=call(tell, "success")) as batch:
        work.enqueue(1)
    driver = Driver(using)
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    soon = Database.of(using).current_time() + HOUR
    assert FinishedBatches(using, soon).clear(10) == 0
    first, second = driver.claim()
    driver.settle(driver.run(first))
    assert FinishedBatches(using, soon).clear(10) == 0
    driver.settle(driver.run(second))
    assert sorted(names()) == ["finish", "success"]
    # What a row says of others is nothing to go by.
    others = JobBatch.objects.using(using).create(
        kind="batch", backend_name="default", created_at=soon - HOUR, finished_at=soon - 2 * HOUR,
        callbacks='{"enqueued":[0,true,"1",null]}',
    )  # fmt: skip
    assert FinishedBatches(using, soon).clear(10) == 2
    assert not JobBatch.objects.using(using).filter(pk__in=[batch.id, others.pk]).exists()


@on_every_database
def test_a_batch_that_is_retried_is_kept_until_all_its_callbacks_have_ended(using: str) -> None:
    with Batch(on_finish=call(tell, "finish")) as batch:
        work.enqueue(1, "fail")
    driver = Driver(using)
    for _ in range(2):
        [claim] = [each for each in driver.claim() if not each.link.is_callback]
        driver.settle(driver.run(claim))
        assert batch.retry() == 1
    Job.objects.using(using).filter(membership__batch=batch.id).cancel()
    soon = Database.of(using).current_time() + HOUR
    assert FinishedBatches(using, soon).clear(10) == 0
    assert Job.objects.using(using).filter(finished_at=None).count() == 3
    Job.objects.using(using).filter(finished_at=None).update(finished_at=soon)
    assert FinishedBatches(using, soon).clear(10) == 1


@on_every_database
def test_bad_batches_are_refused(using: str) -> None:
    with pytest.raises(TypeError, match="on_success must be a task, or a call"):
        Batch(on_success="tell")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="description must be a string"):
        Batch(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most 255 characters"):
        Batch("x" * 256)
    with pytest.raises(TypeError, match="metadata must be a dict"):
        Batch(metadata={1: 2})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="unexpected"):
        Batch(on_success=call(tell, wrong=1))  # type: ignore[call-arg]
    with pytest.raises(InvalidTask, match="whose calls are unique"):
        Batch(on_success=unique)
    with pytest.raises(ValueError, match="not stored yet"):
        _ = Batch().id
    with pytest.raises(BatchDoesNotExist):
        Batch.get(10**9)


@on_every_database
def test_damaged_rows_end_nevertheless(using: str) -> None:
    with Batch(metadata={"a": 1}, on_finish=tell) as batch:
        work.enqueue(1)
    JobBatch.objects.using(using).update(callbacks="{", metadata="[")
    Driver(using).work()
    batch.refresh()
    assert (batch.status, batch.metadata, told) == ("succeeded", {}, [])


@on_every_database
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", "x"), ("rank", 2**20), ("queue_name", "q" * 300), ("queue_name", 1),
        ("task_path", "a\0b"), ("arguments", "\ud800"), ("max_attempts", 1e300), ("delay", 5),
        ("run_at", "tomorrow"), ("metadata", {}), ("limit", ("key", "many", None, 0)),
    ],
)  # fmt: skip
def test_callbacks_that_no_database_takes_keep_no_batch_from_ending(
    using: str, name: str, value: Any
) -> None:
    with Batch(on_finish=tell) as batch:
        work.enqueue(1)
    [stored] = JobBatch.objects.using(using).values_list("callbacks", flat=True)
    values = json.loads(stored)
    values["on_finish"][name] = value
    JobBatch.objects.using(using).update(callbacks=json.dumps(values))
    Driver(using).work()
    batch.refresh()
    assert (batch.status, told) == ("succeeded", [])
