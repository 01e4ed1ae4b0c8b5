"""Enqueueing many calls at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, overload

from asgiref.sync import sync_to_async

from .arguments import TaskArgumentError
from .compat import GenericTask, InvalidTask, Task, TaskResult, task_backends
from .tasks.definition import SteadyQueueTask, runs_ours

P = ParamSpec("P")
R = TypeVar("R")


#: What a call is refused with.
REFUSALS = (InvalidTask, TaskArgumentError, TypeError)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a task, to be enqueued together with others."""

    task: Task
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@overload
def call(task: SteadyQueueTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Call: ...


@overload
def call(task: GenericTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Call: ...


def call(task: Task, /, *args: Any, **kwargs: Any) -> Call:
    """Return a call of ``task`` with these arguments."""
    return Call(task, args, kwargs)


def enqueue_many(calls: Iterable[Call]) -> list[TaskResult]:
    """Store many calls as jobs, in few statements; return their results, in the same order.

    All of them are stored, or none: in one transaction, or in the caller's. Only where their
    backends store jobs in several databases there is one for each, and a backend that is not one
    of Steady Queue gets its calls one after the other. Calls of tasks with ``enqueue_on_commit``
    follow when the caller's transaction commits.

    Raises ``InvalidTask``, ``TypeError`` and ``arguments.TaskArgumentError`` as ``enqueue`` does,
    with the number of the call; nothing is stored then.
    """
    given = list(calls)
    backends = [_backend_of(number, each) for number, each in enumerate(given)]
    ours = {number: each for number, each in enumerate(backends) if runs_ours(each)}
    encoded = {}
    for number, backend in ours.items():
        with _numbered(number):
            encoded[number] = backend.encode(
                given[number].task, given[number].args, dict(given[number].kwargs)
            )
    results: dict[int, TaskResult] = {}
    for backend in dict.fromkeys(ours.values()):
        numbers = [number for number, each in ours.items() if each is backend]
        stored = backend.store([encoded[number] for number in numbers])
        results.update(zip(numbers, stored, strict=True))
    for number in range(len(given)):
        if number not in ours:
            with _numbered(number):
                each = given[number]
                results[number] = each.task.enqueue(*each.args, **each.kwargs)
    return [results[number] for number in range(len(given))]


async def aenqueue_many(calls: Iterable[Call]) -> list[TaskResult]:
    """Do so from a coroutine."""
    results: list[TaskResult] = await sync_to_async(enqueue_many, thread_sensitive=True)(calls)
    return results


def _backend_of(number: int, each: Call) -> Any:
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
    return task_backends[each.task.backend]


@contextmanager
def _numbered(number: int) -> Iterator[None]:
    try:
        yield
    except REFUSALS as error:
        kind = next(each for each in REFUSALS if isinstance(error, each))
        raise kind(f"calls[{number}]: {error}") from error
