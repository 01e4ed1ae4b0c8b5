"""Tasks of this backend: the decorator, the task class, and the registry of what may run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, overload

from django.db import transaction

from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    Task,
    TaskContext,
    TaskResult,
    task_backends,
)
from .concurrency import ConcurrencyLimit
from .errors import UnregisteredTaskError
from .retries import Backoff

if TYPE_CHECKING:
    from .backend import EncodedCall, SteadyQueueBackend

F = TypeVar("F", bound=Callable[..., Any])

#: Tasks by module path: the only ones that a row of the database can choose from.
_registered: dict[str, Task] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTask(Task):
    """A task with the options of Steady Queue."""

    #: How often the task is tried in all; ``None``: the backend's ``max_attempts``.
    max_attempts: int | None = None
    #: ``backoff(exception, task_result)`` gives the seconds until the next attempt, or ``None``
    #: for no further one; ``None`` here: the backend's ``backoff``.
    backoff: Backoff | None = None
    #: Whether to enqueue when the caller's transaction commits rather than within it; ``None``:
    #: the backend's ``enqueue_on_commit``.
    enqueue_on_commit: bool | None = None
    #: How many may run at once; set by ``@limits_concurrency``.
    concurrency: ConcurrencyLimit | None = None
    #: Not before this long after the enqueue; set by ``using(run_after=timedelta)``.
    delay: timedelta | None = None

    def __post_init__(self) -> None:
        # Zero-argument super() fails in dataclasses with slots.
        Task.__post_init__(self)
        register(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        enqueue_on_commit: bool | None = None,
    ) -> SteadyQueueTask:
        """Return this task with other options. ``run_after`` may be a timedelta, which counts
        from the enqueue by the database's clock."""
        changes: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "backend": backend,
            "enqueue_on_commit": enqueue_on_commit,
        }
        changes = {name: value for name, value in changes.items() if value is not None}
        if isinstance(run_after, timedelta):
            changes |= {"delay": run_after, "run_after": None}
        elif run_after is not None:
            changes |= {"run_after": run_after, "delay": None}
        return replace(self, **changes)

    def enqueue(self, *args: Any, **kwargs: Any) -> TaskResult:
        """Store the call as a job; return its result, which is not there yet."""
        return self.get_backend().enqueue(self, list(args), kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTaskResult(TaskResult):  # type: ignore[misc]  # The stubs miss frozen=True.
    """A result whose arguments keep their types: ours hold more than JSON does."""

    #: Whether the call was not stored: its concurrency limit was reached, and it was not to wait.
    #: Such a result has no id, and counts as failed.
    discarded: bool = False

    def __post_init__(self) -> None:
        """Leave the arguments as they are; the codec has vetted them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTaskContext(TaskContext):  # type: ignore[misc]  # As above.
    """What a task with ``takes_context`` gets."""

    #: Grows with every claim of this job. A resource that refuses tokens smaller than one it has
    #: seen is safe from a worker that lost the job without noticing.
    token: int


@overload
def task(function: F, /) -> SteadyQueueTask: ...


@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: bool = ...,
    max_attempts: int | None = ...,
    backoff: Backoff | None = ...,
    enqueue_on_commit: bool | None = ...,
) -> Callable[[F], SteadyQueueTask]: ...


def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    priority: int = DEFAULT_TASK_PRIORITY,
    queue_name: str = DEFAULT_TASK_QUEUE_NAME,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **options: Any,
) -> Any:
    """Make a task of a module-level function or coroutine function.

    Like Django's own decorator, with the options of ``SteadyQueueTask`` on every version of
    Django. Under a backend that does not know them (Django's immediate and dummy ones, in a
    project's tests) they are left out.
    """
    own = _field_names(SteadyQueueTask) - _field_names(Task) - {"delay", "concurrency"}
    unknown = options.keys() - own
    if unknown:
        raise TypeError(f"task() got an unexpected keyword argument {sorted(unknown)[0]!r}")

    def wrap(func: Callable[..., Any]) -> Task:
        task_class = task_backends[backend].task_class
        known = _field_names(task_class)
        return task_class(
            func=func,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            run_after=None,  # Django 6.0 has no default for it.
            takes_context=takes_context,
            **{name: value for name, value in options.items() if name in known},
        )

    return wrap if function is None else wrap(function)


def _field_names(task_class: type[Task]) -> set[str]:
    return {field.name for field in fields(task_class)}


def register(task: Task) -> None:
    """Make ``task`` one that jobs can name. Variants made by ``using`` do not replace it, the one
    with a limit made by ``@limits_concurrency`` does."""
    known = _registered.get(task.module_path)
    if known is None or known.func is not task.func or _limit(task) is not _limit(known):
        _registered[task.module_path] = task


def _limit(task: Task) -> ConcurrencyLimit | None:
    return getattr(task, "concurrency", None)


def registered_tasks() -> list[Task]:
    """Return the tasks that have been decorated so far."""
    return list(_registered.values())


def find_task(path: str) -> Task:
    """Return the task that was decorated at ``path``; never imports anything.

    Raises ``UnregisteredTaskError``.
    """
    task = _registered.get(path)
    if task is None:
        # A task declared for another backend reaches us by using(backend=...).
        module, _, name = path.rpartition(".")
        found = getattr(sys.modules.get(module), "__dict__", {}).get(name)
        # By its type alone: to ask a lazy object of the module for its class would evaluate it.
        task = found if issubclass(type(found), Task) else None
        if task is None or task.module_path != path:
            raise UnregisteredTaskError(
                f"Task {path!r} is not registered in this process. Define it with @task in the "
                "tasks.py of an installed app, or name its module in "
                "STEADY_QUEUE['task_modules']; if it was renamed, keep the old name until its "
                "jobs are done."
            )
    return task


def rebuilt(task: Task, **changes: Any) -> Task:
    """Return ``task`` with ``changes``, without validating anew: a job may be older than a
    setting that would refuse it today."""
    copy = object.__new__(type(task))
    for field in fields(task):
        object.__setattr__(copy, field.name, changes.get(field.name, getattr(task, field.name)))
    return copy


def unregistered(path: str, backend: str) -> Task:
    """Return a stand-in for a task that this process does not know, to show its results."""

    def missing(*args: Any, **kwargs: Any) -> None:
        raise UnregisteredTaskError(f"Task {path!r} is not registered in this process.")

    missing.__module__, _, missing.__qualname__ = path.rpartition(".")
    missing.__name__ = missing.__qualname__
    stand_in = object.__new__(SteadyQueueTask)
    # Not all of these have defaults in Django 6.0.
    values: dict[str, Any] = {
        "func": missing,
        "priority": DEFAULT_TASK_PRIORITY,
        "backend": backend,
        "queue_name": DEFAULT_TASK_QUEUE_NAME,
        "run_after": None,
    }
    for field in fields(SteadyQueueTask):
        value = values.get(field.name, field.default)
        object.__setattr__(stand_in, field.name, value)
    return stand_in


def enqueue_after_commit(backend: SteadyQueueBackend, call: EncodedCall) -> TaskResult:
    """Enqueue when the caller's transaction commits; the result gets its id then."""
    pending = backend.new_result(call)

    def enqueue_now() -> None:
        [stored] = backend.insert([call])
        for name in ("id", "status", "enqueued_at", "discarded"):
            object.__setattr__(pending, name, getattr(stored, name))

    transaction.on_commit(enqueue_now, using=backend.caller_database)
    return pending
