"""Tasks for the tests of the testing kit."""

from __future__ import annotations

import asyncio
import time
from datetime import date, timedelta
from typing import Any

from django.db import router, transaction

from steady_queue_core import Snooze, limits_concurrency, task
from steady_queue_core.retries import constant

from ..app.models import Item

#: What tasks have done, in their order.
DONE: list[Any] = []


@task
def note(what: Any) -> Any:
    DONE.append(what)
    return what


@task
async def note_in_a_coroutine(name: str) -> int:
    item = await Item.objects.acreate(name=name)
    DONE.append(name)
    return item.pk


@task
def count(item: Item) -> Item:
    item.count += 1
    item.save()
    return item


@task
def dated(day: date) -> date:
    return day + timedelta(days=1)


@task
def chain(number: int) -> int:
    if number:
        chain.enqueue(number - 1)
    return number


@task
def fail(message: str) -> None:
    DONE.append(message)
    raise LookupError(message)


@task(max_attempts=3, backoff=constant(0), takes_context=True)
def give_up(context: Any) -> None:
    """Cancel itself, and fail."""
    DONE.append(context.attempt)
    assert context.task_result.cancel()
    raise LookupError


@task(takes_context=True)
def look_at_the_result(context: Any) -> None:
    found = look_at_the_result.get_result(context.task_result.id)
    began = found.started_at is not None and found.started_at == found.last_attempted_at
    DONE.append((found.id, found.status, found.worker_ids, began, found.finished_at))


@task(max_attempts=3, backoff=constant(60), takes_context=True)
def stubborn(context: Any, succeeds_in: int) -> int:
    DONE.append(context.attempt)
    if context.attempt < succeeds_in:
        raise ConnectionError(f"not in attempt {context.attempt}")
    return int(context.token)


@task
def write_and_fail(name: str) -> None:
    Item.objects.create(name=name)
    raise LookupError(name)


@task(delivery="transactional")
def write_in_one_transaction(name: str, fails: bool = False) -> str:
    Item.objects.create(name=name)
    transaction.on_commit(lambda: DONE.append("committed"), using=router.db_for_write(Item))
    if fails:
        raise LookupError(name)
    DONE.append("returned")
    return name


@task(delivery="transactional")
def take_it_back(name: str) -> None:
    Item.objects.create(name=name)
    transaction.set_rollback(True, using=router.db_for_write(Item))


@task(delivery="at_most_once")
def come_back() -> None:
    raise Snooze(60)


@task
def break_the_transaction(name: str) -> None:
    item = Item.objects.create(name=name)
    Item.objects.create(pk=item.pk, name=name)


@task
def hook(name: str, using: str) -> None:
    with transaction.atomic(using=using):
        transaction.on_commit(lambda: DONE.append(f"{name} committed"), using=using)
        note.using(enqueue_on_commit=True).enqueue(name)
    DONE.append(f"{name} ran")


@task
def unstorable() -> object:
    return object()


@limits_concurrency(key=lambda name, depth=0: name)
@task
def alone(name: str, depth: int = 0) -> int:
    DONE.append(depth)
    if depth:
        alone.enqueue(name, depth - 1)
        DONE.append(f"end of {depth}")
    return depth


@limits_concurrency(key="one", on_conflict="discard")
@task
def only_one() -> bool:
    return only_one.enqueue().discarded


@task
def endless() -> None:
    endless.enqueue()


@task
def daily(day: int) -> int:
    DONE.append(day)
    if day < 3:
        daily.using(run_after=timedelta(days=1)).enqueue(day + 1)
    return day


@task
async def wait(number: int) -> int:
    await asyncio.sleep(0)
    return number


@task
def slow_daily(day: int) -> None:
    DONE.append(day)
    time.sleep(0.01)
    slow_daily.using(run_after=timedelta(days=1)).enqueue(day + 1)
