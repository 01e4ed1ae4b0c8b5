"""Enqueueing many calls at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async

from .arguments import TaskArgumentError
from .backend import EncodedCall, SteadyQueueBackend
from .compat import InvalidTask, Task, TaskResult, task_backends


#: What a call is refused with.
KINDS = (InvalidTask, TaskArgumentError, TypeError)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a task, to be enqueued together with others."""

    task: Task
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


def call(task: Task, /, *args: Any, **kwargs: Any) -> Call:
    """Return a call of ``task`` with these arguments."""
    return Call(task, args, kwargs)


def enqueue_many(calls: Iterable[Call]) -> list[TaskResult]:
    """Store many calls as jobs, in few statements; return their results, in the same order.

    All of them are stored, or none: in one transaction, or in the caller's. Only where their
    backends store jobs in several databases there is one for each. Calls of tasks with
    ``enqueue_on_commit`` follow when the caller's transaction commits.

    Raises ``InvalidTask`` and ``arguments.TaskArgumentError`` as ``enqueue`` does, with the number
    of the call; nothing is stored then.
    """
    given = list(calls)
    backends = [_backend_of(number, each) for number, each in enumerate(given)]
    encoded = [
        _encoded(number, backend, each)
        for number, (backend, each) in enumerate(zip(backends, given, strict=True))
    ]
    results: dict[int, TaskResult] = {}
    for backend in dict.fromkeys(backends):
        numbers = [number for number, each in enumerate(backends) if each is backend]
        stored = backend.store([encoded[number] for number in numbers])
        results.update(zip(numbers, stored, strict=True))
    return [results[number] for number in range(len(given))]


async def aenqueue_many(calls: Iterable[Call]) -> list[TaskResult]:
    """Do so from a coroutine."""
    results: list[TaskResult] = await sync_to_async(enqueue_many, thread_sensitive=True)(calls)
    return results


def _backend_of(number: int, each: Call) -> SteadyQueueBackend:
    if not isinstance(each, Call):
        raise TypeError(
            f"calls[{number}] is of type {type(each).__name__}; give calls, as "
            "steady_queue_core.call(task, ...) makes them"
        )
    if not isinstance(each.task, Task):
        raise TypeError(
            f"calls[{number}] is a call of something of type {type(each.task).__name__}; decorate "
            "the function with @task"
        )
    backend = task_backends[each.task.backend]
    if not isinstance(backend, SteadyQueueBackend):
        raise InvalidTask(
            f"calls[{number}]: the backend {each.task.backend!r} of {each.task.module_path} is "
            "not a SteadyQueueBackend; enqueue it by itself"
        )
    return backend


def _encoded(number: int, backend: SteadyQueueBackend, each: Call) -> EncodedCall:
    try:
        return backend.encode(each.task, each.args, dict(each.kwargs))
    except KINDS as error:
        kind = next(each for each in KINDS if isinstance(error, each))
        raise kind(f"calls[{number}]: {error}") from error
