# pyright: strict
"""Uses of the public names that a type checker accepts at its strictest. It is never run."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

from steady_queue_core import (
    Batch,
    Previous,
    ResultOf,
    Unique,
    Workflow,
    aenqueue_many,
    call,
    chain,
    change_recurring_task,
    enqueue_many,
    group,
    limits_concurrency,
    limits_rate,
    recurring,
    schedule_recurring_task,
    task,
    unschedule_recurring_task,
)
from steady_queue_core.models import Job, Queue, RecurringTask


@task
def add(a: int, b: int) -> int:
    return a + b


@task(on_success=add, unique=Unique(key="total"))
def total(numbers: list[int]) -> int:
    return sum(numbers)


@recurring(schedule="@daily", key="clean")
@limits_concurrency(key="clean")
@limits_rate(to=1, per=timedelta(seconds=1))
@task(queue_name="slow")
def clean(days: int = 1) -> None:
    print(days)


def options() -> None:
    assert_type(add.using(priority=3).enqueue(1, 2).return_value, int)
    add.using(run_after=timedelta(hours=1), queue_name="mail").enqueue(1, b=2)
    add.using(on_success=total, on_failure="shop.tasks.clean").enqueue(1, 2)
    results = enqueue_many([call(add, 1, b=2)])
    print(results[0].id, results[0].return_value)


async def options_in_a_coroutine() -> None:
    await add.using(priority=3).aenqueue(1, 2)
    results = await aenqueue_many([call(add, 1, b=2)])
    print(results[0].status)


def stand_ins() -> None:
    chain(call(add, 1, 2), call(add, Previous(), 3), call(add, ResultOf(0), 4)).enqueue()
    (group(call(add, 1, 2), call(add, 3, 4)) | total).enqueue()
    (group(call(add, 1, 2), call(add, 3, 4)) | call(total, Previous())).enqueue()
    workflow = Workflow("sums", on_success=clean)
    first = workflow.add(call(add, 1, 2))
    workflow.add(call(add, first.result, b=first.result), after=[first], name="second")
    print(workflow.enqueue().id)


def batches() -> None:
    with Batch("night", on_success=clean, on_failure=call(clean, 2)) as batch:
        add.enqueue(1, 2)
    batch.cancel()
    print(batch.is_finished, batch.total, Batch.get(3).total)
    print(add.map([1, 2], b=3).enqueue().id)


def rows() -> None:
    Job.objects.retry_failed()
    Job.objects.filter(queue_name="mail").retry_failed()
    Job.objects.using("other").exclude(pk=1).order_by("-pk").discard(batch_size=10)
    assert_type(Job.objects.all().cancel(), int)
    job = Job.objects.get(pk=1)
    assert_type(job, Job)
    print(job.pk)
    job.discard()
    for each in Job.objects.filter(pk=1):
        assert_type(each, Job)
    Queue("mail").pause()
    RecurringTask.objects.get(key="clean").run_now()


def schedules() -> None:
    schedule_recurring_task("noon", clean, schedule="0 12 * * *", args=[1])
    change_recurring_task("noon", schedule="@hourly")
    unschedule_recurring_task("noon")
