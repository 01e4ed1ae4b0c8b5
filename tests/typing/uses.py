"""Uses of tasks as a project has them. A type checker finds fault with the lines that say so, and
with no other; it is never run.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_type

from steady_queue_core import call, enqueue_many, limits_concurrency, recurring, task
from steady_queue_core.retries import constant
from steady_queue_core.tasks import SteadyQueueTaskContext


@task
def resize(picture: int, width: int = 640) -> str:
    return f"{picture} at {width}"


@task(queue_name="mail", max_attempts=5, backoff=constant(3), enqueue_on_commit=True)
def send(address: str, *, subject: str) -> None:
    print(address, subject)


@task
async def fetch(url: str) -> bytes:
    return url.encode()


@task(priority=5)
async def fetch_later(url: str, /) -> bytes:
    return url.encode()


@task(takes_context=True)
def feed(context: SteadyQueueTaskContext, url: str) -> int:
    assert_type(context.is_held(), bool)
    context.checkpoint({"row": 17})
    context.progress(1, 2.5, "rows")
    context.progress("1")  # wrong
    context.progress(1, text=2)  # wrong
    context.checkpoint(data=1)  # wrong
    assert_type(context.step("fetch", str.upper, url), str)
    context.step("fetch", round, url)  # wrong
    context.step(1, round, 2)  # wrong
    context.sleep("rest", timedelta(days=3))
    context.sleep("rest")  # wrong
    return context.token + context.attempt


@task(takes_context=True)
async def feed_later(job: SteadyQueueTaskContext, url: str) -> int:
    await job.acheckpoint(job.checkpointed)
    await job.aprogress(1)
    assert_type(await job.astep("fetch", fetch.func, url), bytes)
    assert_type(await job.astep("count", len, url), int)
    await job.asleep("rest", 3)
    assert_type(await job.ais_held(), bool)
    return job.attempt


@recurring(schedule="@daily", key="report")
@limits_concurrency(key="report")
@task
def report(day: int = 1) -> float:
    return day / 2


@task(expires=timedelta(minutes=5), retention="forever", failure_retention=timedelta(days=90))
def fleeting() -> None: ...


@task(expires="never", retention=timedelta(0))
async def lasting() -> None: ...


@task(expires=datetime.now())  # wrong
def of_one_moment() -> None: ...


@task(retention="never")  # wrong
def kept_in_vain() -> None: ...


@task(max_attempt=3)  # wrong
def misspelt() -> None: ...


@task(priority="high")  # wrong
def of_high_priority() -> None: ...


def correct() -> None:
    assert_type(resize.enqueue(1).return_value, str)
    assert_type(resize.enqueue(1, width=2).discarded, bool)
    assert_type(resize.using(priority=3).enqueue(1, 2).return_value, str)
    assert_type(resize.using(run_after=timedelta(hours=1)).call(1), str)
    assert_type(resize.using(run_after=datetime.now()).get_result("1").return_value, str)
    assert_type(resize.using(expires=datetime.now(), retention="forever").call(1), str)
    assert_type(resize.using(expires="never").call(1), str)
    assert_type(fetch.enqueue("x").return_value, bytes)
    assert_type(fetch_later.enqueue("x").return_value, bytes)
    assert_type(feed.enqueue("x").return_value, int)
    assert_type(feed_later.enqueue(url="x").return_value, int)
    assert_type(report.enqueue(2).return_value, float)
    results = enqueue_many([call(resize, 1, width=2), call(feed, "x")])
    send.enqueue("ada@example.com", subject=str(results[0].id))


async def correct_in_a_coroutine() -> None:
    assert_type((await resize.aenqueue(1)).return_value, str)
    assert_type((await feed_later.using(priority=1).aenqueue("x")).return_value, int)
    assert_type((await fetch.aget_result("1")).return_value, bytes)
    await resize.aenqueue("1")  # wrong
    await send.using(priority=3).aenqueue("x", object="y")  # wrong


def wrong() -> None:
    resize.enqueue()  # wrong
    resize.enqueue("1")  # wrong
    resize.enqueue(1, 2, 3)  # wrong
    resize.enqueue(1, height=2)  # wrong
    resize.using(priority=3).enqueue("1")  # wrong
    resize.using(run_after=60)  # wrong
    resize.using(max_attempts=3)  # wrong
    resize.call("1")  # wrong
    send.enqueue("x", "y")  # wrong
    send.enqueue("x", subject=1)  # wrong
    fetch.enqueue(1)  # wrong
    feed.enqueue()  # wrong
    feed.enqueue(1)  # wrong
    feed.enqueue(None, "x")  # wrong
    feed_later.enqueue(job=None, url="x")  # wrong
    report.enqueue("x")  # wrong
    call(resize)  # wrong
    call(resize, "1")  # wrong
    call(send, "x", object="y")  # wrong
    enqueue_many([resize])  # wrong
