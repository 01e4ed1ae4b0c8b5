"""Unique jobs in tests of a project: in memory, and in the test's database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from steady_queue_core import (
    DuplicateTask,
    Fail,
    Unique,
    aenqueue_many,
    call,
    enqueue_many,
    limits_concurrency,
    task,
)
from steady_queue_core.compat import task_backends
from steady_queue_core.testing import memory, run_enqueued_tasks

from ..models.recurrence import tasks

HOUR = timedelta(hours=1)
DONE: list[Any] = []
DUMMY = "steady_queue_core.testing.DummyBackend"
IMMEDIATE = "steady_queue_core.testing.ImmediateBackend"

everywhere = pytest.mark.parametrize("backend", [DUMMY, None], ids=["memory", "stored"])


@pytest.fixture(autouse=True)
def _empty() -> None:
    DONE.clear()


@pytest.fixture(autouse=True)
def _project(request: Any, settings: Any, db: None) -> None:
    chosen = request.getfixturevalue("backend") if "backend" in request.fixturenames else IMMEDIATE
    settings.TASKS = {"default": {"BACKEND": chosen}} if chosen else tasks("default")


@task(unique=Unique(key=lambda number, how="": number), max_attempts=2)
def work(number: int, how: str = "") -> str:
    DONE.append((number, how))
    if how == "fail":
        raise Fail("no stock")
    if how == "again":
        work.enqueue(number)
    return how


@task(unique=Unique(key="one", on_conflict="raise"))
def only_one(number: int = 0) -> None:
    DONE.append(number)


@task(takes_context=True)
def then_only_one(context: Any) -> None:
    context.enqueue(only_one, 2)


@limits_concurrency(key="one")
@task(unique=Unique(key="one", on_conflict="replace"))
def latest(number: int = 0) -> None:
    DONE.append(number)


@limits_concurrency(key=lambda number: number % 10, on_conflict="discard")
@task(unique=Unique(key="one", on_conflict="replace"))
def latest_hurried(number: int) -> None:
    DONE.append(number)


@task(unique=Unique(key="one", on_conflict="replace", latest=HOUR))
def latest_within_an_hour(number: int) -> None:
    DONE.append(number)


@task(unique=Unique(key="one", keep=HOUR))
def remembered(number: int = 0) -> int:
    return number


@task(unique=Unique(key="one", until="started"))
def in_line(number: int = 0) -> None:
    DONE.append(number)
    if number < 2:
        assert not in_line.enqueue(number + 1).duplicate
        assert in_line.enqueue(9).duplicate


@everywhere
def test_a_duplicate_is_the_job_that_waits(backend: str | None) -> None:
    first, again, other = work.enqueue(1, "a"), work.enqueue(1, "b"), work.enqueue(2)
    assert (again.id, again.duplicate, again.args) == (first.id, True, [1, "a"])
    assert (first.duplicate, other.duplicate) == (False, False)
    run_enqueued_tasks()
    assert sorted(DONE) == [(1, "a"), (2, "")]
    again.refresh()
    assert again.return_value == "a"
    assert not work.enqueue(1).duplicate


@everywhere
def test_a_failure_frees_the_key_and_a_running_job_has_it(backend: str | None) -> None:
    work.enqueue(1, "fail")
    work.enqueue(2, "again")
    run_enqueued_tasks(raise_errors=False)
    assert sorted(DONE) == [(1, "fail"), (2, "again")]
    assert not work.enqueue(1).duplicate


@everywhere
def test_a_cancelled_job_has_no_key(backend: str | None) -> None:
    first = work.enqueue(1)
    assert task_backends["default"].cancel(first.id)  # type: ignore[attr-defined]
    assert not work.enqueue(1).duplicate


@everywhere
def test_bulk(backend: str | None) -> None:
    results = enqueue_many([call(work, number) for number in (1, 2, 1)])
    assert [each.duplicate for each in results] == [False, False, True]
    assert results[2].id == results[0].id
    with pytest.raises(DuplicateTask, match="another call of the same bulk"):
        enqueue_many([call(work, 3), call(only_one, 1), call(only_one, 2)])
    assert not work.enqueue(3).duplicate


@everywhere
def test_the_error_names_the_other_job(backend: str | None) -> None:
    first = only_one.enqueue(1)
    with pytest.raises(DuplicateTask, match=f"only_one/one', is taken by job {first.id}") as raised:
        only_one.enqueue(2)
    assert raised.value.result.id == first.id
    assert raised.value.result.duplicate


@everywhere
def test_the_last_call_replaces_the_others(backend: str | None) -> None:
    first = latest.using(run_after=HOUR).enqueue(1)
    again = latest.enqueue(2)
    assert (again.id, again.duplicate, again.args) == (first.id, True, [2])
    run_enqueued_tasks()
    assert DONE == [2]


@everywhere
def test_a_call_that_must_not_wait_replaces_nothing_without_a_permit(backend: str | None) -> None:
    latest_hurried.using(unique_key="other").enqueue(1)
    first = latest_hurried.enqueue(2)
    assert latest_hurried.enqueue(11).discarded
    first.refresh()
    assert first.args == [2]
    assert latest_hurried.enqueue(12).id == first.id
    run_enqueued_tasks()
    assert sorted(DONE) == [1, 12]


@everywhere
def test_the_last_call_puts_the_job_off_for_no_longer_than_its_key_says(
    backend: str | None,
) -> None:
    for number in range(3):
        latest_within_an_hour.using(run_after=2 * HOUR).enqueue(number)
    run_enqueued_tasks(until=HOUR / 2)
    assert DONE == []
    run_enqueued_tasks(until=HOUR)
    assert DONE == [2]


@everywhere
def test_a_kept_key(backend: str | None) -> None:
    first = remembered.enqueue(1)
    run_enqueued_tasks()
    again = remembered.enqueue(2)
    assert (again.id, again.return_value) == (first.id, 1)


@everywhere
def test_a_key_until_the_start(backend: str | None) -> None:
    in_line.enqueue(0)
    assert in_line.enqueue(5).duplicate
    run_enqueued_tasks()
    assert DONE == [0, 1, 2]


def test_the_immediate_backend_runs_each_call() -> None:
    assert [work.enqueue(1).duplicate for _ in range(2)] == [False, False]
    assert [in_line.enqueue(0).duplicate for _ in range(2)] == [False, False]
    first, again = remembered.enqueue(1), remembered.enqueue(2)
    assert (again.id, again.return_value, again.duplicate) == (first.id, 1, True)


@pytest.mark.django_db(transaction=True)
def test_a_call_that_waits_for_the_commit() -> None:
    with transaction.atomic():
        waiting = remembered.using(enqueue_on_commit=True).enqueue(1)
        first = remembered.enqueue(2)
        assert not waiting.id
    assert (waiting.id, waiting.duplicate, waiting.args) == (first.id, True, [2])


@everywhere
def test_bulk_in_a_coroutine(backend: str | None) -> None:
    results = async_to_sync(aenqueue_many)([call(work, 1), call(work, 1)])
    assert [each.duplicate for each in results] == [False, True]


def test_forgetting_the_jobs_forgets_their_keys() -> None:
    remembered.enqueue(1)
    memory.forget()
    assert not remembered.enqueue(1).duplicate
    task_backends["default"].clear()  # type: ignore[attr-defined]
    assert not remembered.enqueue(1).duplicate


@everywhere
def test_a_job_enqueued_with_an_outcome_becomes_the_one_that_has_its_key(
    backend: str | None,
) -> None:
    first = only_one.using(run_after=HOUR).enqueue(1)
    result = then_only_one.enqueue()
    run_enqueued_tasks()
    result.refresh()
    assert result.status.name == "SUCCESSFUL"
    run_enqueued_tasks(until=2 * HOUR)
    first.refresh()
    assert (first.status.name, DONE) == ("SUCCESSFUL", [1])
