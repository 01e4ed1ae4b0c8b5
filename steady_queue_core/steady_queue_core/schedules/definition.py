"""Recurring tasks: ``@recurring`` over ``@task`` runs a task on a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, TypeVar, runtime_checkable

from .. import arguments
from . import validators as values
from .catch_up import CatchUp
from .cron import Schedule
from .interval import Interval


@runtime_checkable
class TaskLike(Protocol):
    """What a recurring task needs of a task object, whichever package it is from."""

    @property
    def module_path(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def enqueue(self) -> Callable[..., Any]: ...
    @property
    def using(self) -> Callable[..., Any]: ...


TaskT = TypeVar("TaskT", bound=TaskLike)


@dataclass(frozen=True, kw_only=True)
class RecurringTask:
    """A task with the schedule and the arguments that it is enqueued with."""

    key: str
    task: TaskLike = field(hash=False)
    schedule: Schedule | Interval
    args: tuple[object, ...] = field(default=(), hash=False)
    kwargs: Mapping[str, object] = field(default_factory=dict, hash=False)
    queue_name: str | None = None
    """None: the task's own."""
    priority: int | None = None
    """-100 to 100, larger first; None: the task's own."""
    description: str = ""
    catch_up: CatchUp = "skip"
    """What becomes of slots that pass while no scheduler runs."""
    stored_call: str | None = None
    """The encoded arguments of a task that comes from a row, instead of ``args`` and ``kwargs``."""

    def configured_task(self) -> Any:
        """The task with this schedule's queue and priority, ready for ``.enqueue(...)``."""
        given = {"queue_name": self.queue_name, "priority": self.priority}
        changes = {name: value for name, value in given.items() if value is not None}
        return self.task.using(**changes) if changes else self.task

    def call(self) -> tuple[Sequence[object], Mapping[str, object]]:
        """The arguments of the next run; those from a row with model instances as they are now.

        Raises ``arguments.DeserializationError``, and what the database of a model raises.
        """
        if self.stored_call is None:
            return self.args, self.kwargs
        return arguments.decode_call(self.stored_call, resolve_models=True)

    def encoded_call(self) -> str:
        """The arguments as they are stored."""
        if self.stored_call is not None:
            return self.stored_call
        return arguments.encode_call(self.args, self.kwargs)


_registry: dict[str, RecurringTask] = {}


def recurring(
    *,
    schedule: str | timedelta,
    key: str,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    timezone: str | None = None,
    description: str | None = None,
    catch_up: CatchUp = "skip",
) -> Callable[[TaskT], TaskT]:
    """Enqueue the decorated task by itself whenever ``schedule`` is due.

    ``schedule`` is a cron expression (see ``steady_queue_core.schedules.cron``), evaluated in
    ``timezone``, by default ``settings.TIME_ZONE``; or a timedelta, for a run every so many seconds
    (see ``steady_queue_core.schedules.interval``). ``key`` names this schedule of the task and is
    unique in the project. May be used several times on one task. ``description`` is by default
    the first line of the task's docstring. ``catch_up`` says what becomes of slots that pass
    while no scheduler runs: ``"skip"``, ``"last"`` (the last of them runs), or a timedelta (all
    that are no older).

    Raises ValueError for a value that cannot be used or a key that is taken, and TypeError when it
    is not a task that is decorated or an argument has the wrong type; both while the module is
    imported.
    """

    def decorate(task: TaskT) -> TaskT:
        if not is_task(task):
            raise TypeError(
                f"@recurring(key={key!r}) decorates {task!r}, which is not a task; "
                "put it above @task(), not below"
            )
        new = defined(
            task,
            key=key,
            schedule=schedule,
            args=args,
            kwargs=kwargs,
            queue_name=queue_name,
            priority=priority,
            timezone=timezone,
            description=description,
            catch_up=catch_up,
        )
        require_runnable(new)
        _register(new)
        return task

    return decorate


def defined(
    task: Any,
    *,
    key: str,
    schedule: str | timedelta,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None,
    queue_name: str | None,
    priority: int | None,
    timezone: str | None,
    description: str | None,
    catch_up: CatchUp,
) -> RecurringTask:
    """Return the recurring task of these values; raise ValueError or TypeError for wrong ones."""
    key = values.checked_key(key)
    new = RecurringTask(
        key=key,
        task=task,
        schedule=values.checked_schedule(key, schedule, timezone),
        args=values.checked_args(key, args),
        kwargs=values.checked_kwargs(key, kwargs),
        queue_name=values.checked_queue_name(key, queue_name),
        priority=values.checked_priority(key, priority),
        description=values.checked_description(key, description, task),
        catch_up=values.checked_catch_up(key, catch_up),
    )
    try:
        new.encoded_call()
    except arguments.TaskArgumentError as error:
        raise ValueError(f"the recurring task {key!r}: {error}") from error
    return new


def require_runnable(definition: RecurringTask) -> None:
    """Raise ValueError if the task cannot be run with its arguments, queue and priority."""
    require_configurable(definition)
    values.check_fit(definition.key, definition.task, definition.args, definition.kwargs)


def require_configurable(definition: RecurringTask) -> None:
    """Raise ValueError if the backend does not take the task with its queue and priority."""
    try:
        definition.configured_task()
    except Exception as error:
        raise ValueError(
            f"the recurring task {definition.key!r}: its backend refuses it: {error}"
        ) from error


def is_task(candidate: object) -> bool:
    """Whether this is a task object, not its function or its class."""
    return not isinstance(candidate, type) and isinstance(candidate, TaskLike)


def registered() -> list[RecurringTask]:
    """All recurring tasks of the modules imported so far, sorted by key."""
    return [_registry[key] for key in sorted(_registry)]


def find(key: str) -> RecurringTask | None:
    """Return the recurring task of this key that the modules imported so far have."""
    return _registry.get(key)


def is_registered(key: str) -> bool:
    """Whether the modules imported so far have a recurring task of this key."""
    return key in _registry


def clear() -> None:
    """Forget all of them; for tests."""
    _registry.clear()


def _register(new: RecurringTask) -> None:
    known = _registry.get(new.key)
    # A module that is imported again brings new functions at the same path: the newer one counts.
    reimported = (
        known is not None
        and known.task.module_path == new.task.module_path
        and _function_of(known.task) is not _function_of(new.task)
    )
    if known is not None and known != new and not reimported:
        raise ValueError(
            f"the recurring key {new.key!r} is used twice: for {known.task.module_path} at "
            f"{known.schedule.expression!r} and for {new.task.module_path} at "
            f"{new.schedule.expression!r}; give each schedule a key of its own"
        )
    _registry[new.key] = new


def _function_of(task: TaskLike) -> object:
    return getattr(task, "func", task)
