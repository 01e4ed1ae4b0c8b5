"""Unique jobs: at most one live job for a key, on every database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.db.models import F

from steady_queue_core import (
    Batch,
    DuplicateTask,
    Fail,
    Snooze,
    Unique,
    call,
    enqueue_many,
    limits_concurrency,
    task,
)
from steady_queue_core.arguments import decode_call
from steady_queue_core.compat import task_enqueued
from steady_queue_core.dialects import JobKey, portable
from steady_queue_core.dialects.database import Database
from steady_queue_core.errors import ProcessExitError
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    Permit,
    ReadyExecution,
    ScheduledExecution,
    Semaphore,
    UniqueKey,
)
from steady_queue_core.models.operations.clear import FinishedJobs
from steady_queue_core.models.operations.idle_keys import KeptKeys, LostKeys
from steady_queue_core.models.operations.retry import key_holder
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.retries import constant
from steady_queue_core.tasks.metadata import JobMetadata

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@task(unique=True)
def by_arguments(*args: Any, **kwargs: Any) -> Any:
    return args[0] if args else None


@task(unique=Unique(key=lambda number, how="": number), max_attempts=2, backoff=constant(0))
def work(number: int, how: str = "") -> str:
    if how == "fail":
        raise Fail("no stock")
    if how == "raise":
        raise LookupError("no such order")
    if how == "snooze":
        raise Snooze(3600)
    return how


@task(unique=Unique(key="one", on_conflict="raise"))
def only_one(number: int = 0) -> None:
    """Do nothing."""


@task(unique=Unique(key="one", on_conflict="replace"))
def latest(number: int = 0) -> None:
    """Do nothing."""


@task(unique=Unique(key="one", until="started"))
def not_twice_in_line(number: int = 0) -> None:
    """Do nothing."""


@task(unique=Unique(key="one", keep=HOUR))
def remembered(number: int = 0) -> int:
    return number


@limits_concurrency(key="one", to=1)
@task(unique=Unique(key=lambda number: number))
def limited(number: int) -> None:
    """Do nothing."""


@limits_concurrency(key="one", to=1, on_conflict="discard")
@task(unique=Unique(key=lambda number: number))
def dropped(number: int) -> None:
    """Do nothing."""


@limits_concurrency(key=lambda number: number, to=1)
@task(unique=Unique(key="one", on_conflict="replace"))
def latest_limited(number: int) -> None:
    """Do nothing."""


@limits_concurrency(key=lambda number: number % 10, to=1, on_conflict="discard")
@task(unique=Unique(key="one", on_conflict="replace"))
def latest_hurried(number: int) -> None:
    """Do nothing."""


@task(takes_context=True, unique=Unique(key="root"))
def branch(context: Any) -> None:
    context.enqueue(only_one, 1)
    context.enqueue(work, 5)
    context.enqueue(work, 5)


@task(unique=Unique(key="told"))
def told(*args: str) -> None:
    """Do nothing."""


@task(on_success=told)
def tells() -> None:
    """Do nothing."""


def keys(using: str) -> dict[str, int | None]:
    """Return which job has each key, without the group that keys begin with."""
    rows = UniqueKey.objects.using(using).values_list("key", "job_id")
    return {key.partition("/")[2]: job_id for key, job_id in rows}


def jobs(using: str) -> Any:
    return Job.objects.using(using)


def arguments_of(using: str, result: Any) -> list[Any]:
    return list(decode_call(jobs(using).get(pk=result.id).arguments, resolve_models=False)[0])


def stored(using: str) -> dict[str, Any]:
    """Return the rows that a call may change."""
    kinds = (Job, ReadyExecution, ScheduledExecution, BlockedExecution, Permit, Semaphore)
    found = {
        kind.__name__: list(kind.objects.using(using).order_by("pk").values()) for kind in kinds
    }
    return found | {"keys": keys(using)}


# --- keys


@on_every_database
def test_calls_with_the_same_arguments_are_one_job(using: str) -> None:
    first = by_arguments.enqueue(1, {"a": 1, "b": [2]}, name="x")
    again = by_arguments.enqueue(1, {"b": [2], "a": 1}, name="x")
    others = [by_arguments.enqueue(1, {"a": 1, "b": [3]}, name="x"), by_arguments.enqueue(1)]
    assert (again.id, again.duplicate, first.duplicate) == (first.id, True, False)
    assert len({first.id, *(each.id for each in others)}) == 3
    assert sorted(map(str, keys(using).values())) == sorted(
        [first.id, *(each.id for each in others)]
    )


@on_every_database
def test_a_key_of_one_call(using: str) -> None:
    first = by_arguments.using(unique_key="a").enqueue(1)
    assert by_arguments.using(unique_key="a").enqueue(2).id == first.id
    assert by_arguments.using(unique_key="A").enqueue(2).id != first.id
    assert by_arguments.using(unique_key="a ").enqueue(2).id != first.id


@on_every_database
def test_a_group_is_shared_by_tasks(using: str) -> None:
    both = Unique(key="one", group="shop")
    first = by_arguments.using(unique=both).enqueue()
    assert work.using(unique=both).enqueue(1).id == first.id
    assert only_one.enqueue().id != first.id


@on_every_database
def test_a_duplicate_has_the_result_of_the_other_job(using: str) -> None:
    told_of: list[str] = []

    def receive(task_result: Any, **kwargs: Any) -> None:
        told_of.append(task_result.id)

    task_enqueued.connect(receive)
    try:
        first = work.enqueue(1, "x")
        again = work.using(priority=5, queue_name="other").enqueue(1, "y")
    finally:
        task_enqueued.disconnect(receive)
    assert told_of == [first.id]
    assert again.args == [1, "x"]
    assert again.task.queue_name == "default"
    Driver(using).work()
    again.refresh()
    assert again.return_value == "x"
    assert again.duplicate


@on_every_database
def test_a_call_that_is_refused_names_the_other_job(using: str) -> None:
    first = only_one.enqueue(1)
    with transaction.atomic(using=using):
        with pytest.raises(DuplicateTask) as raised:
            only_one.enqueue(2)
        other = by_arguments.enqueue()  # The caller's transaction goes on.
    assert raised.value.result.id == first.id
    assert raised.value.job_id == int(first.id)
    assert f"job {first.id}" in str(raised.value)
    assert "only_one/one" in str(raised.value)
    assert jobs(using).filter(pk=other.id).exists()
    assert None not in keys(using).values()


@on_every_database
def test_a_rolled_back_transaction_leaves_the_key_free(using: str) -> None:
    with transaction.atomic(using=using):
        gone = work.enqueue(1)
        assert work.enqueue(1).id == gone.id
        transaction.set_rollback(True, using=using)
    assert keys(using) == {}
    assert not work.enqueue(1).duplicate


# --- the end of a job


@on_every_database
@pytest.mark.parametrize("how", ["", "fail"])
def test_the_end_of_a_job_frees_its_key(using: str, how: str) -> None:
    driver = Driver(using)
    first = work.enqueue(1, how)
    [claim] = driver.claim()
    assert work.enqueue(1).id == first.id
    driver.settle(driver.run(claim))
    assert keys(using) == {}
    assert not work.enqueue(1).duplicate


@on_every_database
@pytest.mark.parametrize("how", ["raise", "snooze"])
def test_a_job_that_runs_again_keeps_its_key(using: str, how: str) -> None:
    driver = Driver(using)
    first = work.enqueue(1, how)
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    assert keys(using) == {"1": int(first.id)}
    assert work.enqueue(1).id == first.id


@on_every_database
def test_a_lost_claim_frees_nothing(using: str) -> None:
    driver = Driver(using)
    first = work.enqueue(1)
    [claim] = driver.claim()
    done = driver.run(claim)
    rescue(using, driver, set())
    again = Driver(using)
    assert again.dialect.settle(connections[using], [done.outcome]) == set()
    assert keys(using) == {"1": int(first.id)}
    again.work()
    assert keys(using) == {}


@on_every_database
def test_a_job_of_a_dead_process_ends_with_its_key(using: str) -> None:
    driver = Driver(using)
    first, once = work.enqueue(1), only_one.enqueue()
    driver.claim()
    rescue(using, driver, {int(first.id), int(once.id)})
    assert keys(using) == {"1": int(first.id)}
    assert FailedExecution.objects.using(using).filter(pk=once.id).exists()
    assert not only_one.enqueue().duplicate
    Driver(using).work()
    assert keys(using) == {}


def rescue(using: str, driver: Driver, running: set[int]) -> None:
    Rescuer(QueueDatabase(using)).rescue_process(
        driver.process.name, JournalSnapshot(frozenset(running)), ProcessExitError("killed")
    )


@on_every_database
def test_what_is_cancelled_or_discarded_frees_its_key(using: str) -> None:
    cancelled, discarded, later = work.enqueue(1), work.enqueue(2), work.enqueue(3)
    assert cancelled.cancel()
    jobs(using).get(pk=discarded.id).discard()
    assert keys(using) == {"3": int(later.id)}
    assert jobs(using).all().discard() > 0
    assert keys(using) == {}
    assert not any(work.enqueue(number).duplicate for number in (1, 2, 3))


@on_every_database
def test_a_running_job_that_is_cancelled_frees_its_key(using: str) -> None:
    driver = Driver(using)
    running, waits = work.enqueue(1), work.enqueue(2, "raise")
    driver.settle(driver.run(driver.claim(limit=1)[0]))
    assert keys(using) == {"2": int(waits.id)}
    assert not running.duplicate
    [claim] = driver.claim()
    assert waits.cancel()
    driver.settle(driver.run(claim))  # To be retried.
    assert keys(using) == {"2": int(waits.id)}
    driver.work()
    assert keys(using) == {}


@on_every_database
def test_a_job_that_expires_frees_its_key(using: str) -> None:
    work.using(expires=HOUR).enqueue(1)
    jobs(using).update(enqueued_at=F("enqueued_at") - HOUR)
    Driver(using).work()
    assert keys(using) == {}
    assert not work.enqueue(1).duplicate


# --- keep


@on_every_database
def test_a_kept_key_returns_the_finished_result(using: str) -> None:
    first = remembered.enqueue(7)
    Driver(using).work()
    again = remembered.enqueue(8)
    assert (again.id, again.return_value, again.duplicate) == (first.id, 7, True)
    present = Database.of(using).storable_time()
    for sweep in (KeptKeys(using, present), LostKeys(using)):
        assert sweep.clear(100) == 0
    UniqueKey.objects.using(using).update(expires_at=F("expires_at") - 2 * HOUR)
    new = remembered.enqueue(9)
    assert not new.duplicate
    assert keys(using) == {"one": int(new.id)}
    assert UniqueKey.objects.using(using).get().expires_at is None


@on_every_database
def test_keys_that_were_kept_for_long_enough_are_deleted(using: str) -> None:
    remembered.enqueue(7)
    Driver(using).work()
    live = work.enqueue(1)
    UniqueKey.objects.using(using).update(expires_at=F("expires_at") - 2 * HOUR)
    assert KeptKeys(using, Database.of(using).storable_time()).clear(100) == 1
    assert keys(using) == {"1": int(live.id)}


@on_every_database
def test_a_job_is_kept_as_long_as_its_key(using: str) -> None:
    first = remembered.using(retention=timedelta(0)).enqueue(7)
    Driver(using).work()
    present = Database.of(using).storable_time()
    FinishedJobs(jobs(using).all(), present).clear(100)
    assert remembered.enqueue(8).id == first.id
    assert jobs(using).filter(pk=first.id).exists()


@on_every_database
def test_a_failure_does_not_stay(using: str) -> None:
    work.using(unique=Unique(key="x", keep=HOUR)).enqueue(1, "fail")
    Driver(using).work()
    assert keys(using) == {}


@on_every_database
def test_a_key_whose_job_was_deleted_is_free(using: str) -> None:
    work.enqueue(1)
    work.enqueue(2)
    for model in (ReadyExecution, Job):
        model.objects.using(using).all()._raw_delete(using)
    assert len(keys(using)) == 2
    assert not work.enqueue(1).duplicate
    assert LostKeys(using).clear(100) == 1
    assert list(keys(using)) == ["1"]


# --- until it is started


@on_every_database
def test_a_key_until_the_start_is_freed_by_it(using: str) -> None:
    driver = Driver(using)
    first = not_twice_in_line.enqueue(1)
    assert not_twice_in_line.enqueue(2).id == first.id
    claims = driver.claim()
    assert not_twice_in_line.enqueue(2).id == first.id
    assert driver.dialect.free_started_keys(connections[using], claims) == set()
    second = not_twice_in_line.enqueue(2)
    assert not second.duplicate
    driver.settle(driver.run(claims[0]))
    assert keys(using) == {"one": int(second.id)}
    first.refresh()
    assert first.is_finished


@on_every_database
def test_a_job_without_its_key_counts_as_started(using: str) -> None:
    """Although its process has ended before it could run."""
    driver = Driver(using)
    first = not_twice_in_line.enqueue(1)
    driver.dialect.free_started_keys(connections[using], driver.claim())
    rescue(using, driver, set())
    assert jobs(using).get(pk=first.id).started_at is not None
    assert not not_twice_in_line.enqueue(2).duplicate
    assert len(Driver(using).work()) == 2
    assert keys(using) == {}


@on_every_database
def test_a_lost_claim_frees_no_key_at_its_start(using: str) -> None:
    driver = Driver(using)
    first = not_twice_in_line.enqueue(1)
    claims = driver.claim()
    rescue(using, driver, set())
    assert driver.dialect.free_started_keys(connections[using], claims) == set()
    assert keys(using) == {"one": int(first.id)}
    assert jobs(using).get(pk=first.id).started_at is None


# --- replacing


@on_every_database
def test_a_job_that_waits_is_replaced(using: str) -> None:
    first = latest.enqueue(1)
    again = latest.using(priority=7, queue_name="mail", run_after=HOUR).enqueue(2)
    assert (again.id, again.duplicate, again.args) == (first.id, True, [2])
    row = jobs(using).get()
    assert (row.priority, row.queue_name) == (7, "mail")
    assert ReadyExecution.objects.using(using).count() == 0
    due = ScheduledExecution.objects.using(using).get()
    assert (due.pk, due.queue_name, due.rank) == (row.pk, "mail", -7)
    assert abs(due.due_at - row.enqueued_at - HOUR) < timedelta(minutes=1)
    latest.enqueue(3)
    assert ScheduledExecution.objects.using(using).count() == 0
    assert arguments_of(using, first) == [3]
    assert len(Driver(using).work()) == 1
    assert keys(using) == {}


@on_every_database
def test_a_job_that_has_started_is_not_replaced(using: str) -> None:
    driver = Driver(using)
    first = latest.enqueue(1)
    [claim] = driver.claim()
    again = latest.enqueue(2)
    assert (again.id, again.args) == (first.id, [1])
    driver.settle(driver.run(claim))
    assert jobs(using).count() == 1
    retried = work.using(unique=Unique(key="r", on_conflict="replace"))
    other = retried.enqueue(1, "snooze")
    driver.work()
    again = retried.enqueue(2)
    assert (again.id, again.args) == (other.id, [1, "snooze"])


@on_every_database
def test_a_replaced_job_changes_its_limit(using: str) -> None:
    holder = latest_limited.using(unique_key="other").enqueue(1)
    first = latest_limited.enqueue(1)
    assert BlockedExecution.objects.using(using).filter(pk=first.id).exists()
    latest_limited.enqueue(2)
    assert ReadyExecution.objects.using(using).filter(pk=first.id).exists()
    waits = latest_limited.using(unique_key="third").enqueue(2)
    assert BlockedExecution.objects.using(using).filter(pk=waits.id).exists()
    latest_limited.enqueue(1)
    assert BlockedExecution.objects.using(using).filter(pk=first.id).exists()
    assert ReadyExecution.objects.using(using).filter(pk=waits.id).exists()
    held = dict(Permit.objects.using(using).values_list("job_id", "key"))
    assert held.keys() == {int(holder.id), int(waits.id)}
    assert set(Semaphore.objects.using(using).values_list("value", flat=True)) == {0}
    assert len(Driver(using).work()) == 3


@on_every_database
def test_a_call_that_must_not_wait_replaces_nothing_if_it_finds_no_permit(using: str) -> None:
    latest_hurried.using(unique_key="other").enqueue(1)
    first = latest_hurried.enqueue(2)
    before = stored(using)
    refused = latest_hurried.using(queue_name="mail").enqueue(1)
    assert (refused.discarded, refused.id, refused.duplicate) == (True, "", False)
    assert stored(using) == before
    # It has the permit itself, or is to have another one, or may wait for its time.
    for number in (12, 3):
        again = latest_hurried.enqueue(number)
        assert (again.id, again.args, again.discarded) == (first.id, [number], False)
        assert ReadyExecution.objects.using(using).filter(pk=first.id).exists()
    later = latest_hurried.using(run_after=HOUR).enqueue(1)
    assert (later.id, later.args) == (first.id, [1])
    # What waits for its time stays as well.
    assert latest_hurried.enqueue(11).discarded
    assert ScheduledExecution.objects.using(using).filter(pk=first.id).exists()
    assert arguments_of(using, first) == [1]


@on_every_database
def test_of_one_bulk_the_last_call_that_finds_a_permit_replaces_the_job(using: str) -> None:
    latest_hurried.using(unique_key="other").enqueue(1)
    first = latest_hurried.enqueue(2)
    results = enqueue_many([
        call(latest_hurried, 11), call(latest_hurried, 3), call(latest_hurried, 21),
        call(latest_hurried.using(unique_key="third"), 4), call(latest_hurried, 31),
    ])  # fmt: skip
    assert [each.discarded for each in results] == [False, False, True, False, True]
    assert [each.id for each in results[:2]] == [first.id, first.id]
    assert arguments_of(using, first) == [3]
    assert enqueue_many([call(latest_hurried, 41)])[0].discarded
    assert len(Driver(using).work()) == 3
    assert keys(using) == {}


@on_every_database
def test_jobs_of_one_bulk_that_are_replaced_do_not_share_a_permit(using: str) -> None:
    left, right = (latest_hurried.using(unique_key=key) for key in ("left", "right"))
    before = [left.enqueue(2), right.enqueue(3)]
    results = enqueue_many([call(left, 4), call(right, 14)])
    assert [each.discarded for each in results] == [False, True]
    assert [arguments_of(using, each) for each in before] == [[4], [3]]
    held = Permit.objects.using(using).order_by("job_id").values_list("job_id", flat=True)
    assert [str(pk) for pk in held] == [each.id for each in before]


@on_every_database
def test_a_replaced_job_stays_in_its_batch(using: str) -> None:
    with Batch() as batch:
        first = latest.enqueue(1)
    for number in (2, 3):
        assert latest.using(metadata={"by": "hand"}).enqueue(number).id == first.id
        assert [each.id for each in batch.results()] == [first.id]
    Driver(using).work()
    batch.refresh()
    assert (batch.status, batch.total, batch.pending) == ("succeeded", 1, 0)


@on_every_database
def test_a_call_that_replaces_a_job_is_no_member_of_its_batch(using: str) -> None:
    first = latest.enqueue(1)
    with Batch() as batch:
        assert latest.enqueue(2).id == first.id
        latest.using(unique_key="other").enqueue(3)
    assert arguments_of(using, first) == [2]
    assert '"batch"' not in str(jobs(using).get(pk=first.id).metadata)
    jobs(using).get(pk=first.id).cancel()
    batch.refresh()
    assert (batch.status, batch.total, batch.pending) == ("running", 1, 1)
    Driver(using).work()
    batch.refresh()
    assert (batch.status, batch.total, batch.pending) == ("succeeded", 1, 0)


# --- bulk, commits, contexts, limits


@on_every_database
def test_duplicates_within_one_bulk(using: str) -> None:
    present = work.enqueue(3)
    results = enqueue_many([call(work, number) for number in (1, 2, 1, 3, 2, 1)])
    ids = [each.id for each in results]
    assert ids == [ids[0], ids[1], ids[0], present.id, ids[1], ids[0]]
    assert len(set(ids)) == 3
    assert [each.duplicate for each in results] == [False, False, True, True, True, True]
    assert jobs(using).count() == 3


@on_every_database
def test_the_last_of_one_bulk_replaces_the_others(using: str) -> None:
    results = enqueue_many([call(latest, 1), call(work, 1), call(latest, 2), call(latest, 3)])
    assert [each.duplicate for each in results] == [True, False, True, False]
    assert results[0].id == results[2].id == results[3].id
    assert arguments_of(using, results[0]) == [3]
    assert jobs(using).count() == 2


@on_every_database
def test_a_bulk_with_a_call_that_is_refused_stores_nothing(using: str) -> None:
    with pytest.raises(DuplicateTask) as raised:
        enqueue_many([call(work, 1), call(only_one, 1), call(only_one, 2)])
    assert raised.value.result is None
    assert (jobs(using).count(), keys(using)) == (0, {})


@on_every_database
def test_calls_that_wait_for_the_commit(using: str) -> None:
    waiting = latest.using(enqueue_on_commit=True)
    with transaction.atomic(using=using):
        first, second = waiting.enqueue(1), waiting.enqueue(2)
        assert keys(using) == {}
    assert (first.id, first.duplicate) == (second.id, False)
    assert (second.duplicate, second.args) == (True, [2])


@on_every_database
def test_a_coroutine_enqueues(using: str) -> None:
    first = work.enqueue(1)
    again = async_to_sync(work.aenqueue)(1)
    assert (again.id, again.duplicate) == (first.id, True)


@on_every_database
def test_what_a_task_leaves_to_its_outcome_is_unique(using: str) -> None:
    first = only_one.enqueue(0)
    told_of: list[str] = []

    def receive(task_result: Any, **kwargs: Any) -> None:
        told_of.append(task_result.task.module_path.rpartition(".")[2])

    branch.enqueue()
    driver = Driver(using)
    [_, claim] = driver.claim()
    task_enqueued.connect(receive)
    try:
        driver.settle(driver.run(claim))
    finally:
        task_enqueued.disconnect(receive)
    assert told_of == ["work"]
    assert keys(using)["one"] == int(first.id)
    assert jobs(using).count() == 3
    assert sorted(keys(using)) == ["5", "one"]


@on_every_database
def test_a_callback_is_unique(using: str) -> None:
    driver = Driver(using)
    for _ in range(3):
        tells.enqueue()
    for claim in driver.claim():
        driver.settle(driver.run(claim))
    assert jobs(using).filter(finished_at=None).count() == 1


@on_every_database
def test_a_job_that_waits_for_a_permit_has_its_key(using: str) -> None:
    limited.enqueue(1)
    second = limited.enqueue(2)
    assert BlockedExecution.objects.using(using).filter(pk=second.id).exists()
    assert limited.enqueue(2).id == second.id
    Driver(using).work()
    assert keys(using) == {}


@on_every_database
def test_a_job_that_finds_no_permit_gets_no_key(using: str) -> None:
    dropped.enqueue(1)
    assert dropped.enqueue(2).discarded
    assert list(keys(using)) == ["1"]
    [first, second] = enqueue_many([call(dropped, 3), call(dropped, 3)])
    assert first.discarded
    assert second.discarded
    assert list(keys(using)) == ["1"]


# --- retries by hand


@on_every_database
def test_a_retry_by_hand_takes_the_key(using: str) -> None:
    failed = work.enqueue(1, "fail")
    Driver(using).work()
    assert jobs(using).get(pk=failed.id).retry()
    assert keys(using) == {"1": int(failed.id)}
    assert work.enqueue(1).id == failed.id


@on_every_database
def test_a_retry_is_refused_if_another_job_has_the_key(using: str) -> None:
    failed = []
    for _ in range(2):
        failed.append(work.enqueue(1, "fail"))
        Driver(using).work()
    assert FailedExecution.objects.using(using).count() == 2
    other = work.enqueue(1)
    with pytest.raises(DuplicateTask, match=f"job {other.id} has its unique key"):
        jobs(using).get(pk=failed[0].id).retry()
    assert jobs(using).all().retry_failed() == 0
    jobs(using).filter(pk=other.id)._raw_delete(using)
    assert key_holder(jobs(using).filter(pk=failed[0].id)) is None
    ReadyExecution.objects.using(using).all()._raw_delete(using)
    assert jobs(using).all().retry_failed() == 1
    assert ReadyExecution.objects.using(using).count() == 1
    assert ClaimedExecution.objects.using(using).count() == 0
    assert keys(using) == {"1": int(failed[0].id)}


# --- the latest time ------------------------------------------------------------------------------


@task(unique=Unique(key="search", on_conflict="replace", latest=HOUR))
def index_later(number: int) -> int:
    return number


def let_pass(using: str, passed: timedelta) -> None:
    """Let the jobs, and what they know of their first calls, be that much older."""
    for job in Job.objects.using(using):
        job.enqueued_at -= passed
        job.scheduled_at = job.scheduled_at and job.scheduled_at - passed
        metadata = JobMetadata.read(job.metadata)
        key = JobKey.of(metadata.unique)
        if key is not None and key.since is not None:
            key = key._replace(since=key.since - passed)
            job.metadata = replace(metadata, unique=key.stored).text()
        job.save(using=using)
    for row in ScheduledExecution.objects.using(using):
        row.due_at -= passed
        row.save(using=using)


def minutes_left(using: str) -> int:
    """Return in how many minutes the one job is due."""
    row = ScheduledExecution.objects.using(using).get()
    present = Database.of(using).current_time()
    assert row.due_at == Job.objects.using(using).get(pk=row.pk).scheduled_at
    return round((portable.aware(row.due_at) - present) / timedelta(minutes=1))


@on_every_database
def test_calls_that_replace_each_other_put_a_job_off_no_longer_than_its_latest_time(
    using: str,
) -> None:
    found = []
    for number in range(6):
        index_later.using(run_after=timedelta(minutes=25)).enqueue(number)
        found.append(minutes_left(using))
        let_pass(using, timedelta(minutes=11))
    assert found == [25, 25, 25, 25, 16, 5]
    last = index_later.using(run_after=timedelta(minutes=25)).enqueue(6)
    assert ScheduledExecution.objects.using(using).count() == 0
    driver = Driver(using)
    assert [result.outcome.job_id for result in driver.work()] == [int(last.id)]
    last.refresh()
    assert last.return_value == 6
    # The next one is a first call again.
    index_later.using(run_after=timedelta(minutes=25)).enqueue(7)
    assert minutes_left(using) == 25


@on_every_database
def test_the_first_call_and_those_of_one_bulk_have_the_latest_time_too(using: str) -> None:
    index_later.using(run_after=5 * HOUR).enqueue(0)
    assert minutes_left(using) == 60
    let_pass(using, timedelta(minutes=10))
    enqueue_many([call(index_later.using(run_after=delay), 1) for delay in (HOUR, 3 * HOUR)])
    assert minutes_left(using) == 50
    index_later.using(run_after=timedelta(minutes=1)).enqueue(2)
    assert minutes_left(using) == 1
    index_later.using(run_after=3 * HOUR).enqueue(3)
    assert minutes_left(using) == 50
    Job.objects.using(using).cancel()
    enqueue_many([call(index_later.using(run_after=delay), 1) for delay in (3 * HOUR, 2 * HOUR)])
    assert minutes_left(using) == 60


@on_every_database
def test_a_copy_of_a_replaced_job_is_a_first_call(using: str) -> None:
    for number in range(2):
        index_later.using(run_after=HOUR).enqueue(number)
    let_pass(using, timedelta(minutes=30))
    Job.objects.using(using).get().cancel()
    copy = Job.objects.using(using).get().enqueue_copy()
    assert copy is not None
    index_later.using(run_after=3 * HOUR).enqueue(2)
    assert minutes_left(using) == 60
