"""``@recurring`` over ``@task`` runs a task on a schedule; the recurring tasks in the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar, Unpack

from ..own_tasks import OWN_TASKS
from . import validators
from .values import Options, RecurringDefinition, TaskLike, Values

TaskT = TypeVar("TaskT", bound=TaskLike)

_registry: dict[str, RecurringDefinition] = {}


def require_known(function: str, given: Mapping[str, object], known: type) -> None:
    """Raise TypeError for a keyword that a function does not take."""
    for name in (each for each in given if each not in known.__annotations__):
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def recurring(
    *, schedule: str | timedelta | datetime, key: str, **options: Unpack[Options]
) -> Callable[[TaskT], TaskT]:
    """Enqueue the decorated task automatically whenever ``schedule`` is due.

    ``schedule`` is a cron expression (see ``steady_queue_core.schedules.cron``), evaluated in
    ``timezone``, by default ``settings.TIME_ZONE``; or a timedelta for a fixed interval (see
    ``steady_queue_core.schedules.interval``); or a datetime for a single run. ``key`` names this
    schedule and is unique in the project. A task can have several schedules. Its jobs get ``args``
    and ``kwargs``, and the ``queue_name`` and the ``priority`` of the task unless they are given.
    ``description`` is by default the first line of the task's docstring. ``catch_up`` decides about
    slots that pass while no scheduler runs: ``"skip"`` them, run the ``"last"`` one, or run all
    that are not older than a timedelta.

    There are slots from ``starts_at`` to ``ends_at``, and at most ``repeats`` runs. ``overlap``
    decides about a run that is due while the previous one has not ended: ``"allow"`` it, ``"skip"``
    it, or ``"queue"`` it until then.

    Raises ValueError for an invalid value or a key that is taken, and TypeError if the decorated
    object is not a task or a value has the wrong type; both while the module is imported.
    """
    require_known("recurring", options, Options)

    def decorate(task: TaskT) -> TaskT:
        if not is_task(task):
            raise TypeError(
                f"@recurring(key={key!r}) decorates {task!r}, which is not a task; "
                "put it above @task(), not below"
            )
        new = define(key, task, schedule, **options)
        require_runnable(new)
        _register(new)
        return task

    return decorate


def define(
    key: str,
    task: TaskLike,
    schedule: str | timedelta | datetime,
    *,
    timezone: str | None = None,
    kwargs: Mapping[str, object] | None = None,
    description: str | None = None,
    **values: Unpack[Values],
) -> RecurringDefinition:
    """Return a recurring task with the options of ``@recurring``. Raises ValueError and
    TypeError."""
    with validators.naming(key):
        when = validators.checked_schedule(schedule, timezone)
    return RecurringDefinition(
        key=key,
        task=task,
        schedule=when,
        kwargs={} if kwargs is None else kwargs,
        description=validators.description_of(task) if description is None else description,
        **values,
    )


def require_runnable(definition: RecurringDefinition) -> None:
    """Raise ValueError if the task cannot be run with its arguments, queue and priority."""
    require_configurable(definition)
    with validators.naming(definition.key):
        validators.check_fit(definition.task, definition.args, definition.kwargs)


def require_configurable(definition: RecurringDefinition) -> None:
    """Raise ValueError if the backend refuses the task with its queue and priority, or if it does
    what a user was allowed to do at one time."""
    if getattr(definition.task, "module_path", None) in OWN_TASKS:
        raise ValueError(
            f"the recurring task {definition.key!r}: Steady Queue enqueues this task itself"
        )
    try:
        definition.configured_task()
    except Exception as error:
        raise ValueError(
            f"the recurring task {definition.key!r}: its backend refuses it: {error}"
        ) from error


def is_task(candidate: object) -> bool:
    """Whether ``candidate`` is a task object, rather than a function or a class."""
    return not isinstance(candidate, type) and isinstance(candidate, TaskLike)


def registered() -> list[RecurringDefinition]:
    """Return all recurring tasks in the modules imported so far, sorted by key."""
    return [_registry[key] for key in sorted(_registry)]


def find(key: str) -> RecurringDefinition | None:
    """Return the recurring task of this key in the modules imported so far, or ``None``."""
    return _registry.get(key)


def is_registered(key: str) -> bool:
    """Whether the modules imported so far define a recurring task of this key."""
    return key in _registry


def clear() -> None:
    """Forget all recurring tasks; for tests."""
    _registry.clear()


def _register(new: RecurringDefinition) -> None:
    known = _registry.get(new.key)
    # Importing a module again makes new functions at the same path: the newer one counts.
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
