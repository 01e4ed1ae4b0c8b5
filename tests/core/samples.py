"""Tasks of all kinds, for the tests of the backend."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from django.dispatch import Signal

from steady_queue_core import task
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.compat import NATIVE, TaskResult, task_backends
from steady_queue_core.models import Job

from ..app.models import Item

if NATIVE:
    from django.tasks import task as stock_task
else:
    from django_tasks import task as stock_task

FRAMEWORK = "django.tasks" if NATIVE else "django_tasks"
BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
OURS = {"BACKEND": BACKEND, "QUEUES": []}

real_transactions = pytest.mark.django_db(transaction=True)


@task
def echo(*args: Any, **kwargs: Any) -> Any:
    return [list(args), kwargs]


@task
def nothing() -> None:
    """Return nothing."""


@stock_task
def stock(a: int, b: int = 1) -> int:
    return a + b


@stock_task
async def stock_coroutine(a: int) -> int:
    await asyncio.sleep(0)
    return a + 1


@task(takes_context=True, max_attempts=3, backoff=lambda exception, task_result: 0)
def stubborn(context: Any, succeeds_in: int) -> str:
    if context.attempt < succeeds_in:
        raise ValueError(f"not in attempt {context.attempt}")
    return f"in attempt {context.attempt} of {context.task_result.id}"


@task(takes_context=True)
async def own_context(context: Any, name: str) -> list[Any]:
    result = context.task_result
    return [name, context.attempt, context.token, result.status, len(result.worker_ids)]


@task
def breaks() -> None:
    raise LookupError("broken on purpose")


@task
async def breaks_in_a_coroutine() -> None:
    raise LookupError("broken on purpose")


@task(priority=10, queue_name="mail", max_attempts=5, enqueue_on_commit=True)
def configured() -> None:
    """Have other options than the defaults."""


@task
def count_item(item: Item) -> Item:
    item.count += 1
    item.save()
    return item


def plain(a: int) -> int:
    return a * 2


async def plain_coroutine(a: int) -> int:
    return a * 3


def five_seconds(exception: BaseException, task_result: TaskResult) -> float:
    return 5


def no_task() -> None:
    """Be no task."""


def without_arguments() -> None:
    """Leave no room for a context."""


class Recorder:
    """Receives a signal and keeps what it brought."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.calls: list[SimpleNamespace] = []

    def __call__(self, sender: Any, task_result: TaskResult, **kwargs: Any) -> None:
        seen = SimpleNamespace(
            sender=sender,
            result=task_result,
            status=task_result.status,
            stored=Job.objects.filter(pk=task_result.id, finished_at=None).count(),
        )
        self.calls.append(seen)


def backend(alias: str = "default") -> SteadyQueueBackend:
    return task_backends[alias]
