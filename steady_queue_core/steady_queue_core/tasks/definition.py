"""Tasks of Steady Queue: the decorator, and the task class."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from asgiref.sync import sync_to_async
from django.utils import timezone
from django.utils.module_loading import import_string

from ..arguments.signature import location_of, require_fit
from ..compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    GenericTask,
    InvalidTask,
    Task,
    task_backends,
)
from ..configuration.errors import suggest
from ..features import declared
from ..retries import Backoff
from . import metadata as of_jobs
from . import other_backends as foreign
from .copies import field_names, rebuilt, reduced
from .copies import unpickled as unpickled  # Pickles name it here.
from .metadata import JobMetadata
from .options import USING, TaskOptions, UsingOptions
from .registry import QueuedTask, register, runs_ours
from .task_context import SteadyQueueTaskContext
from .task_result import SteadyQueueTaskResult

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTask(QueuedTask, declared.TaskFields, GenericTask[P, R], Generic[P, R]):
    """A task with the options of Steady Queue."""

    #: Most attempts of a job; ``None``: the backend's ``max_attempts``.
    max_attempts: int | None = None
    #: ``backoff(exception, task_result)`` returns the seconds until the next attempt, or ``None``
    #: to give up. If it is ``None`` itself: the backend's ``backoff``.
    backoff: Backoff | None = None
    #: Whether to enqueue when the caller's transaction commits rather than within it; ``None``:
    #: the backend's ``enqueue_on_commit``.
    enqueue_on_commit: bool | None = None
    #: Earliest start, counted from the enqueue; set by ``using(run_after=timedelta)``.
    delay: timedelta | None = None
    #: What its jobs keep beyond their columns; ``None``: nothing.
    job_metadata: JobMetadata | None = None

    def __post_init__(self) -> None:
        try:
            for each in declared.FIELDS:
                if (value := getattr(self, each.name)) is not None:
                    object.__setattr__(self, each.name, each.of_task(value))
            # Zero-argument super() fails in dataclasses with slots.
            Task.__post_init__(self)
        except InvalidTask as error:
            # A module that fails to import breaks every command: name the place.
            raise InvalidTask(f"{location_of(self.func)}: {error}") from error
        if runs_ours(self.get_backend()):
            register(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def using(self, **options: Unpack[UsingOptions]) -> SteadyQueueTask[P, R]:
        """Return this task with other options.

        A timedelta as ``run_after`` or ``expires`` counts from the enqueue, by the database's
        clock. ``unique_key`` replaces the key of ``unique``, of the task or given here.
        ``fair_key`` counts in fair queues only, and ``shard_key`` with a sharded backend only.
        """
        for name in options:
            if name not in USING:
                raise TypeError(_unknown_option(name))
        given = {name: value for name, value in options.items() if value is not None}
        changes: dict[str, Any] = {name: given[name] for name in _REPLACED if name in given}
        for each in declared.FIELDS:
            if (value := each.of_call(given, self)) is not None:
                changes[each.name] = value
        run_after = given.get("run_after")
        if isinstance(run_after, timedelta):
            changes |= {"delay": run_after, "run_after": None}
        elif run_after is not None:
            changes |= {"run_after": run_after, "delay": None}
        stored = {name: given[name] for name in of_jobs.OF_CALLS if name in given}
        if stored:
            of_jobs.require_options(stored, self.module_path)
            known = self.job_metadata or of_jobs.NONE
            changes["job_metadata"] = known.with_options(stored, self.module_path, of_call=True)
        variant: SteadyQueueTask[P, R] = rebuilt(self, **changes)
        variant.get_backend().validate_task(variant)
        return variant

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
    *, takes_context: Literal[False] = ..., **options: Unpack[TaskOptions]
) -> TaskDecorator: ...


@overload
def task(
    *, takes_context: Literal[True], **options: Unpack[TaskOptions]
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
    own = field_names(SteadyQueueTask) - field_names(Task) - _NO_OPTIONS
    stored = {name: options.pop(name) for name in of_jobs.OPTIONS if name in options}
    for name in sorted(options.keys() - own):
        near = suggest(name, {*own, *of_jobs.OPTIONS})
        raise TypeError(f"task() got an unexpected keyword argument {name!r}; {near}")

    def wrap(func: Callable[..., Any]) -> Task:
        if any(value is not None for value in stored.values()):
            of_jobs.require_options(stored, location_of(func))
            options["job_metadata"] = of_jobs.NONE.with_options(stored, location_of(func))
        task_class = task_backends[backend].task_class
        if task_class is Task:
            task_class = (
                SteadyQueueTask  # Backends without a task class of their own accept this one.
            )
        known = field_names(task_class)
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
    if name in field_names(SteadyQueueTask) - _NO_OPTIONS:
        return f"{told}; only @task has this option"
    return f"{told}; {suggest(name, USING)}"


#: The fields of a task that are not options of ``@task`` under their own names.
_NO_OPTIONS = {"delay", "job_metadata", *declared.LIMITS}
#: The options of ``using()`` that replace fields of the same names.
_REPLACED = ("priority", "queue_name", "backend", "enqueue_on_commit")
