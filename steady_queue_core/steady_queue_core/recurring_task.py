"""Recurring tasks: ``@recurring`` over ``@task`` runs a task on a schedule."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from . import arguments
from .catch_up import CatchUp
from .configuration.durations import LONGEST
from .cron import InvalidScheduleError, Schedule
from .interval import Interval

LONGEST_KEY = 255
LONGEST_QUEUE_NAME = 255
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


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

    def configured_task(self) -> Any:
        """The task with this schedule's queue and priority, ready for ``.enqueue(...)``."""
        given = {"queue_name": self.queue_name, "priority": self.priority}
        changes = {name: value for name, value in given.items() if value is not None}
        return self.task.using(**changes) if changes else self.task


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

    ``schedule`` is a cron expression (see ``steady_queue_core.cron``), evaluated in ``timezone``,
    by default ``settings.TIME_ZONE``; or a timedelta, for a run every so many seconds (see
    ``steady_queue_core.interval``). ``key`` names this schedule of the task and is unique in the
    project. May be used several times on one task. ``description`` is by default the first line of
    the task's docstring. ``catch_up`` says what becomes of slots that pass while no scheduler
    runs: ``"skip"``, ``"last"`` (the last of them runs), or a timedelta (all that are no older).

    Raises ValueError for a value that cannot be used or a key that is taken, and TypeError when it
    is not a task that is decorated or an argument has the wrong type; both while the module is
    imported.
    """

    def decorate(task: TaskT) -> TaskT:
        if isinstance(task, type) or not isinstance(task, TaskLike):
            raise TypeError(
                f"@recurring(key={key!r}) decorates {task!r}, which is not a task; "
                "put it above @task(), not below"
            )
        new = RecurringTask(
            key=_checked_name("@recurring(key=...)", key, LONGEST_KEY),
            task=task,
            schedule=_schedule_of(key, schedule, timezone),
            args=_checked_args(key, args),
            kwargs=_checked_kwargs(key, kwargs),
            queue_name=_checked_queue_name(key, queue_name),
            priority=_checked_priority(key, priority),
            description=_description_of(task) if description is None else description,
            catch_up=_checked_catch_up(key, catch_up),
        )
        try:
            new.configured_task()
        except Exception as error:
            raise ValueError(
                f"the recurring task {key!r}: its backend refuses it: {error}"
            ) from error
        try:
            arguments.encode_call(new.args, new.kwargs)
        except arguments.TaskArgumentError as error:
            raise ValueError(f"the recurring task {key!r}: {error}") from error
        _register(new)
        return task

    return decorate


def registered() -> list[RecurringTask]:
    """All recurring tasks of the modules imported so far, sorted by key."""
    return [_registry[key] for key in sorted(_registry)]


def clear() -> None:
    """Forget all of them; for tests."""
    _registry.clear()


def _function_of(task: TaskLike) -> object:
    return getattr(task, "func", task)


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


def _schedule_of(key: str, schedule: str | timedelta, timezone: str | None) -> Schedule | Interval:
    try:
        if isinstance(schedule, timedelta):
            if timezone:
                raise InvalidScheduleError(
                    f"an interval has no time zone, but timezone={timezone!r} is given; leave it "
                    "out, or write a cron expression"
                )
            return Interval(schedule)
        if not isinstance(schedule, str):
            raise InvalidScheduleError(
                f"schedule must be a cron expression or a timedelta, not {type(schedule).__name__}"
            )
        return Schedule(schedule, timezone or "")
    except ValueError as error:
        raise type(error)(f"the recurring task {key!r}: {error}") from error


def _checked_queue_name(key: str, value: object) -> str | None:
    where = f"the recurring task {key!r}: queue_name"
    return None if value is None else _checked_name(where, value, LONGEST_QUEUE_NAME)


def _checked_name(where: str, value: object, longest: int) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{where} must be a string, not {type(value).__name__}")
    if not value.strip():
        raise ValueError(f"{where} must not be empty")
    if len(value) > longest:
        raise ValueError(f"{where} has {len(value)} characters, at most {longest} are allowed")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise ValueError(f"{where} holds a control character or a lone surrogate: {value!r}")
    return value


def _checked_args(key: str, args: object) -> tuple[object, ...]:
    if not isinstance(args, (list, tuple)):
        raise TypeError(
            f"the recurring task {key!r}: args must be a list or tuple, not {type(args).__name__}"
        )
    return tuple(args)


def _checked_kwargs(key: str, kwargs: object) -> Mapping[str, object]:
    if kwargs is None:
        return MappingProxyType({})
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise TypeError(
            f"the recurring task {key!r}: kwargs must be a dict with strings as keys, or None"
        )
    return MappingProxyType(dict(kwargs))


def _checked_priority(key: str, priority: object) -> int | None:
    if priority is None:
        return None
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(
            f"the recurring task {key!r}: priority must be an integer, "
            f"not {type(priority).__name__}"
        )
    if not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise ValueError(
            f"the recurring task {key!r}: priority must be from {LOWEST_PRIORITY} to "
            f"{HIGHEST_PRIORITY}, not {priority}"
        )
    return priority


def _checked_catch_up(key: str, value: object) -> CatchUp:
    if value == "skip" or value == "last":
        return value
    if isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST:
        return value
    raise ValueError(
        f"the recurring task {key!r}: catch_up must be 'skip', 'last', or a timedelta of up to "
        f"{LONGEST.days} days, not {value!r}"
    )


def _description_of(task: TaskLike) -> str:
    function = _function_of(task)
    return (inspect.getdoc(function) or "").partition("\n")[0] if function is not task else ""
