"""Tasks of Steady Queue: the decorator, the task class, and the registry of runnable tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from pickle import PicklingError
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    Never,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from asgiref.sync import sync_to_async
from django.utils import timezone
from django.utils.module_loading import import_string

from ..call_keys import Key
from ..compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    AnyTask,
    BaseTaskBackend,
    GenericTask,
    InvalidTask,
    InvalidTaskBackend,
    Task,
    task_backends,
)
from ..concurrency import ConcurrencyLimit
from ..configuration.errors import suggest
from ..errors import UnregisteredTaskError
from ..features.callbacks.options import require_declared_options
from ..features.delivery.options import Delivery
from ..features.expiry.options import Expires
from ..features.retention.period import Period
from ..features.time_limits.options import Grace, Timeout
from ..rates.limit import RateLimit
from ..retries import Backoff
from ..unique import CallKey, Unique, checked_call_key, checked_unique
from . import metadata as of_jobs
from . import other_backends as foreign
from .fair_calls import checked_fair_key
from .metadata import JobMetadata
from .own_tasks import own_task_at
from .shard_calls import checked_shard_key
from .signature import location_of, require_fit
from .task_context import SteadyQueueTaskContext
from .task_result import SteadyQueueTaskResult

P = ParamSpec("P")
R = TypeVar("R")

#: Tasks by module path. A row can only choose among these.
_registered: dict[str, Task] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTask(GenericTask[P, R], Generic[P, R]):
    """A task with the options of Steady Queue."""

    #: Most attempts of a job; ``None``: the backend's ``max_attempts``.
    max_attempts: int | None = None
    #: ``backoff(exception, task_result)`` returns the seconds until the next attempt, or ``None``
    #: to give up. If it is ``None`` itself: the backend's ``backoff``.
    backoff: Backoff | None = None
    #: Whether to enqueue when the caller's transaction commits rather than within it; ``None``:
    #: the backend's ``enqueue_on_commit``.
    enqueue_on_commit: bool | None = None
    #: The concurrency limit; set by ``@limits_concurrency``.
    concurrency: ConcurrencyLimit | None = None
    #: The rate limit; set by ``@limits_rate``.
    rate: RateLimit | None = None
    #: Which of its calls are one job; ``None``: none.
    unique: Unique | None = None
    #: The key of a job in a fair queue, or what computes it from the arguments; ``None``: it has
    #: none.
    fair_key: Key | None = None
    #: The key that decides about the shard of a call, or what computes it from the arguments;
    #: ``None``: that of its sharded backend.
    shard_key: Key | None = None
    #: Earliest start, counted from the enqueue; set by ``using(run_after=timedelta)``.
    delay: timedelta | None = None
    #: How long an attempt may take, and how much longer if it does not end then; ``None``: the
    #: backend's ``timeout`` and ``timeout_grace``.
    timeout: Timeout | None = None
    timeout_grace: Grace | None = None
    #: What its jobs keep beyond their columns; ``None``: nothing.
    job_metadata: JobMetadata | None = None

    def __post_init__(self) -> None:
        try:
            if self.unique is not None:
                object.__setattr__(self, "unique", checked_unique(self.unique))
            if self.fair_key is not None:
                checked_fair_key(self.fair_key)
            if self.shard_key is not None:
                checked_shard_key(self.shard_key)
            # Zero-argument super() fails in dataclasses with slots.
            Task.__post_init__(self)
        except InvalidTask as error:
            # A module that fails to import breaks every command: name the place.
            raise InvalidTask(f"{location_of(self.func)}: {error}") from error
        if runs_ours(self.get_backend()):
            register(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what differs from the declared task: limits and keys may have functions without a
        name."""
        path = self.module_path
        declared = _declared(path, sys.modules.get(path.rpartition(".")[0]))
        if type(declared) is not type(self):
            raise PicklingError(f"Task {path!r} is not declared in this process.")
        changes = {
            name: getattr(self, name)
            for name in sorted(_field_names(type(self)) - {"func"})
            if getattr(self, name) != getattr(declared, name)
        }
        return unpickled, (path, changes)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        enqueue_on_commit: bool | None = None,
        metadata: dict[str, Any] | None = None,
        max_snoozes: int | None = None,
        delivery: Delivery | None = None,
        max_crashes: int | None = None,
        expires: Expires | None = None,
        retention: Period | None = None,
        failure_retention: Period | None = None,
        timeout: Timeout | None = None,
        timeout_grace: Grace | None = None,
        unique: Unique | Literal[True] | None = None,
        unique_key: CallKey | None = None,
        fair_key: CallKey | Callable[..., object] | None = None,
        shard_key: CallKey | Callable[..., object] | None = None,
        on_success: AnyTask | str | None = None,
        on_failure: AnyTask | str | None = None,
        **unknown: Never,
    ) -> SteadyQueueTask[P, R]:
        """Return this task with other options.

        A timedelta as ``run_after`` or ``expires`` counts from the enqueue, by the database's
        clock. ``unique_key`` replaces the key of ``unique``, of the task or given here.
        ``fair_key`` counts in fair queues only, and ``shard_key`` with a sharded backend only.
        """
        for name in unknown:
            raise TypeError(_unknown_option(name))
        stored = {
            "metadata": metadata,
            "max_snoozes": max_snoozes,
            "delivery": delivery,
            "max_crashes": max_crashes,
            "expires": expires,
            "retention": retention,
            "failure_retention": failure_retention,
            "timeout": timeout,
            "timeout_grace": timeout_grace,
            "on_success": on_success,
            "on_failure": on_failure,
        }
        changes: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "backend": backend,
            "enqueue_on_commit": enqueue_on_commit,
            "unique": self._unique_with(unique, unique_key),
            "fair_key": None if fair_key is None else checked_fair_key(fair_key, self.module_path),
            "shard_key": (
                None if shard_key is None else checked_shard_key(shard_key, self.module_path)
            ),
        }
        changes = {name: value for name, value in changes.items() if value is not None}
        if isinstance(run_after, timedelta):
            changes |= {"delay": run_after, "run_after": None}
        elif run_after is not None:
            changes |= {"run_after": run_after, "delay": None}
        if any(value is not None for value in stored.values()):
            require_declared_options(stored, known_task, self.module_path)
            known = self.job_metadata or of_jobs.NONE
            changes["job_metadata"] = known.with_options(stored, self.module_path, of_call=True)
        variant: SteadyQueueTask[P, R] = rebuilt(self, **changes)
        variant.get_backend().validate_task(variant)
        return variant

    def _unique_with(self, unique: object, key: object) -> Unique | None:
        """Return the option with what is given to ``using()``; ``None``: nothing."""
        given = None if unique is None else checked_unique(unique)
        if key is None:
            return given
        known = given or self.unique or Unique()
        return replace(known, key=checked_call_key(key, self.module_path))

    def dated(self) -> Task:
        """Return this task with a time in place of its delay, for backends without delays."""
        if self.delay is None:
            return self
        found: Task = rebuilt(self, run_after=timezone.now() + self.delay, delay=None)
        return found

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> SteadyQueueTaskResult[P, R]:
        """Store the call as a job; return its pending result."""
        backend: Any = self.get_backend()
        result: Any
        if runs_ours(backend):
            result = backend.enqueue(self, list(args), kwargs)
        else:
            require_fit(self, args, kwargs)
            result = foreign.enqueue(backend, self, args, kwargs, SteadyQueueTaskResult)
        return cast("SteadyQueueTaskResult[P, R]", result)

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> SteadyQueueTaskResult[P, R]:
        """Async version of :meth:`enqueue`."""
        backend: Any = self.get_backend()
        result: SteadyQueueTaskResult[P, R]
        if runs_ours(backend):
            result = await backend.aenqueue(self, list(args), kwargs)
        else:
            result = await sync_to_async(
                partial(self.enqueue, *args, **kwargs), thread_sensitive=True
            )()
        return result

    def map(self, items: Iterable[Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return a group of calls of this task, one for each item, which is its first argument;
        the others are the same for all. Enqueue it, or collect its results with ``|``.

        Raises ``ValueError`` if there are no items.
        """
        # By name: groups are made of calls, and these of tasks.
        return import_string("steady_queue_core.batches.group.mapped")(self, items, args, kwargs)

    if TYPE_CHECKING:
        # Not every Django has types for these.
        def call(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        async def acall(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        def get_result(self, result_id: str) -> SteadyQueueTaskResult[P, R]: ...
        async def aget_result(self, result_id: str) -> SteadyQueueTaskResult[P, R]: ...


class TaskDecorator(Protocol):
    """Turns a function into a task."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> SteadyQueueTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> SteadyQueueTask[P, R]: ...


class ContextTaskDecorator(Protocol):
    """Turns a function into a task that gets the context as its first argument."""

    @overload
    def __call__(
        self,
        function: Callable[Concatenate[SteadyQueueTaskContext, P], Coroutine[Any, Any, R]],
        /,
    ) -> SteadyQueueTask[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[SteadyQueueTaskContext, P], R], /
    ) -> SteadyQueueTask[P, R]: ...


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> SteadyQueueTask[P, R]: ...


@overload
def task(function: Callable[P, R], /) -> SteadyQueueTask[P, R]: ...


@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: Literal[False] = ...,
    max_attempts: int | None = ...,
    backoff: Backoff | None = ...,
    enqueue_on_commit: bool | None = ...,
    metadata: dict[str, Any] | None = ...,
    max_snoozes: int | None = ...,
    delivery: Delivery | None = ...,
    max_crashes: int | None = ...,
    expires: timedelta | Literal["never"] | None = ...,
    retention: Period | None = ...,
    failure_retention: Period | None = ...,
    timeout: Timeout | None = ...,
    timeout_grace: Grace | None = ...,
    unique: Unique | Literal[True] | None = ...,
    fair_key: Key | None = ...,
    shard_key: Key | None = ...,
    on_success: AnyTask | str | None = ...,
    on_failure: AnyTask | str | None = ...,
) -> TaskDecorator: ...


@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: Literal[True],
    max_attempts: int | None = ...,
    backoff: Backoff | None = ...,
    enqueue_on_commit: bool | None = ...,
    metadata: dict[str, Any] | None = ...,
    max_snoozes: int | None = ...,
    delivery: Delivery | None = ...,
    max_crashes: int | None = ...,
    expires: timedelta | Literal["never"] | None = ...,
    retention: Period | None = ...,
    failure_retention: Period | None = ...,
    timeout: Timeout | None = ...,
    timeout_grace: Grace | None = ...,
    unique: Unique | Literal[True] | None = ...,
    fair_key: Key | None = ...,
    shard_key: Key | None = ...,
    on_success: AnyTask | str | None = ...,
    on_failure: AnyTask | str | None = ...,
) -> ContextTaskDecorator: ...


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
    """Turn a module-level function or coroutine function into a task.

    Like Django's own decorator, but with the options of ``SteadyQueueTask`` on every version of
    Django. A backend with a task class of its own ignores them.
    """
    own = _field_names(SteadyQueueTask) - _field_names(Task) - _NO_OPTIONS
    stored = {name: options.pop(name) for name in of_jobs.OPTIONS if name in options}
    for name in sorted(options.keys() - own):
        near = suggest(name, {*own, *of_jobs.OPTIONS})
        raise TypeError(f"task() got an unexpected keyword argument {name!r}; {near}")

    def wrap(func: Callable[..., Any]) -> Task:
        if any(value is not None for value in stored.values()):
            require_declared_options(stored, known_task, location_of(func))
            options["job_metadata"] = of_jobs.NONE.with_options(stored, location_of(func))
        task_class = task_backends[backend].task_class
        if task_class is Task:
            task_class = (
                SteadyQueueTask  # Backends without a task class of their own accept this one.
            )
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


def _unknown_option(name: str) -> str:
    """Return what to say of an option that ``using()`` has not."""
    told = f"using() got an unexpected keyword argument {name!r}"
    if name in _field_names(SteadyQueueTask) - _NO_OPTIONS:
        return f"{told}; only @task has this option"
    known: Any = SteadyQueueTask.using
    return f"{told}; {suggest(name, known.__kwdefaults__)}"


#: The fields of a task that are not options of ``@task`` under their own names.
_NO_OPTIONS = {"delay", "concurrency", "rate", "job_metadata"}


def _field_names(task_class: type[Task]) -> set[str]:
    return {each.name for each in fields(task_class)}


def runs_ours(backend: BaseTaskBackend) -> bool:
    """Whether a backend is part of Steady Queue."""
    return issubclass(backend.task_class, SteadyQueueTask)


def register(task: Task) -> None:
    """Register ``task``, so that jobs can name it. Decorating the function again replaces it, as
    do the variants with a limit that ``@limits_concurrency`` and ``@limits_rate`` create."""
    known = _registered.get(task.module_path)
    if known is None or known.func is not task.func or _limits(task) != _limits(known):
        _registered[task.module_path] = task


def _limits(task: Task) -> tuple[int, int]:
    # By identity: each decoration makes others.
    return id(getattr(task, "concurrency", None)), id(getattr(task, "rate", None))


def registered_tasks() -> list[Task]:
    """Return all tasks that are registered so far."""
    return list(_registered.values())


def known_task(path: str) -> Task | None:
    """Return the task at ``path`` as ``find_task`` does, or ``None``."""
    return _registered.get(path) or own_task_at(path) or _variant(path)


def find_task(path: str) -> Task:
    """Return the task that is declared at ``path`` for a backend of Steady Queue: decorated for it,
    or made by ``using(backend=...)`` in the module of its function.

    Never imports anything, except where a task of Steady Queue itself is. Raises
    ``UnregisteredTaskError``.
    """
    task = known_task(path)
    if task is None:
        raise UnregisteredTaskError(
            f"Task {path!r} is not registered in this process. Define it with @task in the "
            "tasks.py of an installed app, or name its module in "
            "STEADY_QUEUE['task_modules']; if it was renamed, keep the old name until its "
            "jobs are done."
        )
    return task


def require_declared(task: Task) -> None:
    """Raise ``InvalidTask`` for a task of another backend that is not declared for workers."""
    if known_task(task.module_path) is not None:
        return
    module, _, name = task.module_path.rpartition(".")
    raise InvalidTask(
        f"{task.module_path} is not declared for {task.backend!r} or another backend of Steady "
        f"Queue: its workers would refuse to run it. Declare it in {module}: "
        f"{name}_queued = {name}.using(backend={task.backend!r})"
    )


def _variant(path: str) -> Task | None:
    """Return the variant for Steady Queue that the module of ``path`` makes of another task."""
    module = sys.modules.get(path.rpartition(".")[0])
    for value in list(getattr(module, "__dict__", {}).values()):
        # By type(): reading the __class__ of a lazy object would evaluate it.
        if issubclass(type(value), Task) and value.module_path == path and _is_ours(value):
            _registered[path] = value
            return _registered[path]
    return None


def _is_ours(task: Task) -> bool:
    try:
        return runs_ours(task.get_backend())
    except InvalidTaskBackend:
        return False


def rebuilt(task: Task, **changes: Any) -> Any:
    """Return ``task`` with ``changes``, unvalidated: a job may be older than a setting that refuses
    its task today."""
    copy = object.__new__(type(task))
    for each in fields(task):
        object.__setattr__(copy, each.name, changes.get(each.name, getattr(task, each.name)))
    return copy


def unpickled(path: str, changes: dict[str, Any]) -> Any:
    """Return the task that is declared at ``path`` with ``changes``. Raises ``ValueError``, as the
    tasks of Django do."""
    try:
        module = import_module(path.rpartition(".")[0])
    except (ImportError, ValueError):
        module = None
    declared = _declared(path, module)
    if declared is None:
        raise ValueError(f"Expected {path!r} to point to a Task instance.")
    return rebuilt(declared, **changes)


def _declared(path: str, module: ModuleType | None) -> Task | None:
    """Return the task that a module has by this path, or that is registered by it."""
    found: Any = getattr(module, path.rpartition(".")[2], None)
    if issubclass(type(found), SteadyQueueTask) and found.module_path == path:
        return cast("Task", found)
    return known_task(path)


def unregistered(path: str, backend: str) -> Task:
    """Return a stand-in for an unregistered task, to show its results."""

    def missing(*args: Any, **kwargs: Any) -> None:
        raise UnregisteredTaskError(f"Task {path!r} is not registered in this process.")

    missing.__module__, _, missing.__qualname__ = path.rpartition(".")
    missing.__name__ = missing.__qualname__
    return undeclared(missing, backend)


def undeclared(function: Callable[..., Any], backend: str, **options: Any) -> Task:
    """Return a task that is not validated, and that nobody finds."""
    made = object.__new__(SteadyQueueTask)
    # Not all of these have defaults in Django 6.0.
    values: dict[str, Any] = {
        "func": function,
        "priority": DEFAULT_TASK_PRIORITY,
        "backend": backend,
        "queue_name": DEFAULT_TASK_QUEUE_NAME,
        "run_after": None,
        **options,
    }
    for each in fields(SteadyQueueTask):
        value = values.get(each.name, each.default)
        object.__setattr__(made, each.name, value)
    return made
