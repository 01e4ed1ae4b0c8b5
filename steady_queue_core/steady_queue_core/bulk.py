"""Enqueues many calls at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, overload

from asgiref.sync import sync_to_async

from .arguments import TaskArgumentError
from .compat import AnyTask, AnyTaskResult, GenericTask, InvalidTask, Task, task_backends
from .errors import PartlyEnqueued
from .tasks.definition import SteadyQueueTask
from .tasks.registry import runs_ours

P = ParamSpec("P")
R = TypeVar("R")


#: The errors that refuse a call.
REFUSALS = (InvalidTask, TaskArgumentError, TypeError)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a task, for ``enqueue_many``."""

    task: AnyTask
    args: tuple[Any, ...] = field(default=(), repr=False)
    kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)


@overload
def call(task: SteadyQueueTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Call: ...


@overload
def call(task: GenericTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Call: ...


def call(task: Task, /, *args: Any, **kwargs: Any) -> Call:
    """Return a call of ``task`` with these arguments."""
    return Call(task, args, kwargs)


def enqueue_many(calls: Iterable[Call]) -> list[AnyTaskResult]:
    """Store many calls as jobs in few statements; return their results in the same order.

    Either all calls are stored or none, in one transaction or in the caller's. Calls of several
    backends are stored backend by backend, each in a transaction of its own: put them into
    ``transaction.atomic`` to have all or none. A backend of another package gets its calls one by
    one. Calls of tasks with ``enqueue_on_commit`` are stored when the caller's transaction commits.

    Raises ``InvalidTask``, ``TypeError`` and ``arguments.TaskArgumentError`` like ``enqueue``,
    with the index of the call, ``DuplicateTask`` and ``QueueFull``. Nothing is stored then, unless
    a backend finds a duplicate and another one has stored its calls. Of a sharded backend, the
    calls of each shard are stored all or none, and ``PartlyEnqueued`` is raised if a shard refuses
    its calls after another one has stored.
    """
    given = list(calls)
    aliases = [_alias_of(number, each) for number, each in enumerate(given)]
    backends: dict[str, Any] = {alias: task_backends[alias] for alias in dict.fromkeys(aliases)}
    own = {alias: each for alias, each in backends.items() if runs_ours(each)}
    ours = {number: own[alias] for number, alias in enumerate(aliases) if alias in own}
    encoded = {}
    for number, backend in ours.items():
        each = given[number]
        try:
            encoded[number] = backend.encode(each.task, each.args, dict(each.kwargs))
        except REFUSALS as error:
            raise located(error, f"calls[{number}]") from error
    if len(own) > 1:  # Nothing of one is stored if another has no room.
        for backend in own.values():
            own_calls = [encoded[number] for number, each in ours.items() if each is backend]
            backend.require_room(own_calls, keep=False)
    results: dict[int, AnyTaskResult] = {}
    for backend in dict.fromkeys(ours.values()):
        numbers = [number for number, each in ours.items() if each is backend]
        try:
            stored = backend.store([encoded[number] for number in numbers])
        except PartlyEnqueued as error:
            earlier = {numbers[number]: each for number, each in error.stored.items()}
            error.stored = {**results, **earlier}
            raise
        results.update(zip(numbers, stored, strict=True))
    for number in range(len(given)):
        if number not in ours:
            each = given[number]
            try:
                results[number] = each.task.enqueue(*each.args, **each.kwargs)
            except REFUSALS as error:
                raise located(error, f"calls[{number}]") from error
    return [results[number] for number in range(len(given))]


async def aenqueue_many(calls: Iterable[Call]) -> list[AnyTaskResult]:
    """Async version of :func:`enqueue_many`."""
    results: list[AnyTaskResult] = await sync_to_async(enqueue_many, thread_sensitive=True)(calls)
    return results


def _alias_of(number: int, each: Call) -> str:
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
    alias: str = each.task.backend
    return alias


def located(error: Exception, where: str) -> Exception:
    """Return a refusal that names ``where`` the call is."""
    kind = next(each for each in REFUSALS if isinstance(error, each))
    return kind(f"{where}: {error}")
