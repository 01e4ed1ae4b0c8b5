"""Enqueueing many calls at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from steady_queue_core import aenqueue_many, call, enqueue_many
from steady_queue_core.arguments import TaskArgumentError
from steady_queue_core.bulk import Call
from steady_queue_core.dialects import batches
from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution

from ..models.everywhere import on_every_database
from .samples import FRAMEWORK, OURS, Recorder, echo, real_transactions, stock


def tasks_on(using: str) -> dict[str, Any]:
    return {"default": {**OURS, "OPTIONS": {"database": using}}}


@on_every_database
def test_results_are_those_of_the_calls_in_their_order(using: str, settings: Any) -> None:
    settings.TASKS = tasks_on(using)
    later = echo.using(run_after=timedelta(hours=1))
    urgent = echo.using(priority=7, queue_name="mail")
    results = enqueue_many(
        [call(echo, 1), call(later, 2, a="x"), Call(stock, (3,), {"b": 4}), call(urgent, [5])]
    )
    jobs = Job.objects.using(using).in_bulk([int(result.id) for result in results])
    stored = [jobs[int(result.id)] for result in results]
    paths = [each.module_path for each in (echo, echo, stock, echo)]
    assert [job.task_path for job in stored] == paths
    assert [(job.queue_name, job.priority) for job in stored][-1] == ("mail", 7)
    assert [(result.args, result.kwargs) for result in results] == [
        ([1], {}), ([2], {"a": "x"}), ([3], {"b": 4}), ([[5]], {}),
    ]  # fmt: skip
    ready = ReadyExecution.objects.using(using).order_by("pk").values_list("pk", flat=True)
    assert list(ready) == [stored[0].pk, stored[2].pk, stored[3].pk]
    assert ScheduledExecution.objects.using(using).get().pk == stored[1].pk


@on_every_database
def test_many_calls_take_few_statements_and_one_transaction(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks_on(using)
    monkeypatch.setattr(batches, "MOST_JOBS", 100)
    with CaptureQueriesContext(connections[using]) as captured:
        results = enqueue_many(call(echo, number) for number in range(1000))
    assert len({result.id for result in results}) == 1000
    assert len(captured) <= 10 * 12
    assert Job.objects.using(using).count() == 1000
    with transaction.atomic(using=using):
        enqueue_many([call(echo, 1), call(echo, 2)])
        transaction.set_rollback(True, using=using)
    assert Job.objects.using(using).count() == 1000


@pytest.mark.django_db
def test_long_arguments_are_spread_over_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_TEXT", 1000)
    text = "x" * 400
    results = enqueue_many([call(echo, text) for _ in range(7)])
    assert [job.pk for job in Job.objects.order_by("pk")] == [int(result.id) for result in results]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        (call(echo, {"x": [lambda: 1]}), TaskArgumentError, r"calls\[2\]: args\[0\]\['x'\]\[0\]"),
        (call(len), TypeError, r"calls\[2\] is a call of .* builtin_function.*@task"),
        (echo, TypeError, r"calls\[2\] is of type SteadyQueueTask.*steady_queue_core.call"),
    ],
)
def test_one_bad_call_stores_nothing(bad: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        enqueue_many([call(echo), call(echo), bad, call(echo)])
    assert Job.objects.count() == 0


@pytest.mark.django_db
def test_calls_of_another_backend_go_there_one_after_the_other(settings: Any) -> None:
    settings.TASKS = {
        "default": OURS,
        "other": {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"},
    }
    elsewhere = stock.using(backend="other")
    results = enqueue_many([call(elsewhere, 1), call(echo, 2), call(elsewhere, 3)])
    assert [result.args for result in results] == [[1], [2], [3]]
    assert [result.backend for result in results] == ["other", "default", "other"]
    assert Job.objects.count() == 1
    with pytest.raises(TypeError, match=r"calls\[1\]: args\[0\] of .*stock: "):
        enqueue_many([call(echo), call(elsewhere, object())])


@pytest.mark.django_db
def test_no_calls_are_no_jobs() -> None:
    assert enqueue_many([]) == []


@real_transactions
def test_those_that_wait_for_the_commit_follow_it() -> None:
    waiting = echo.using(enqueue_on_commit=True)
    with transaction.atomic():
        first, second = enqueue_many([call(waiting, 1), call(echo, 2)])
        assert (first.id, Job.objects.count()) == ("", 1)
    assert int(first.id) > int(second.id)


@real_transactions
def test_each_job_is_announced(recorders: dict[str, Recorder]) -> None:
    results = enqueue_many([call(echo, 1), call(echo, 2)])
    assert [each.result for each in recorders["enqueued"].calls] == results


@real_transactions
def test_coroutines_do_so_too() -> None:
    results = async_to_sync(aenqueue_many)([call(echo, 1), call(echo, 2)])
    assert Job.objects.count() == len(results) == 2
