"""Recurring tasks: ``@recurring`` over ``@task`` runs a task on a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from .. import arguments
from ..own_tasks import OWN_TASKS
from . import validators
from .catch_up import CatchUp
from .overlap import Overlap
from .span import AnySchedule, Span, policy_for


@runtime_checkable
class TaskLike(Protocol):
    """The parts of a task object that a recurring task needs, whichever package it is from."""

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
class RecurringDefinition:
    """A task with the schedule and the arguments that it is enqueued with.

    Raises ValueError or TypeError for a value that cannot be used.
    """

    key: str
    task: TaskLike = field(hash=False)
    schedule: AnySchedule
    args: Sequence[object] = field(default=(), hash=False)
    kwargs: Mapping[str, object] = field(default_factory=dict, hash=False)
    queue_name: str | None = None
    """None: the task's own."""
    priority: int | None = None
    """-100 to 100, larger first; None: the task's own."""
    description: str = ""
    catch_up: CatchUp = "skip"
    """Which of the slots that pass while no scheduler runs are made up for. A single run is never
    skipped: ``"skip"`` is ``"last"`` there."""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    """The first and the last instant that may be a slot."""
    repeats: int | None = None
    """How many runs are enqueued; None: any number."""
    overlap: Overlap = "allow"
    """What becomes of a run that is due while the previous one has not ended."""
    stored_call: str | None = None
    """The encoded arguments of a task that is stored in a row, in place of ``args`` and
    ``kwargs``."""
    encoded_call: str = field(init=False, repr=False, compare=False)
    """The arguments in their stored form."""
    span: Span = field(init=False, repr=False, compare=False)
    """The slots: those of the schedule from ``starts_at`` to ``ends_at``."""

    def __post_init__(self) -> None:
        set_checked = partial(object.__setattr__, self)
        set_checked("key", validators.checked_key(self.key))
        set_checked("args", validators.checked_args(self.key, self.args))
        set_checked("kwargs", validators.checked_kwargs(self.key, self.kwargs))
        validators.checked_queue_name(self.key, self.queue_name)
        validators.checked_priority(self.key, self.priority)
        validators.checked_description(self.key, self.description)
        validators.checked_catch_up(self.key, self.catch_up)
        set_checked("catch_up", policy_for(self.schedule, self.catch_up))
        for name in ("starts_at", "ends_at"):
            set_checked(name, validators.checked_bound(self.key, name, getattr(self, name)))
        validators.checked_repeats(self.key, self.repeats)
        validators.checked_overlap(self.key, self.overlap)
        self._check_single_run()
        set_checked("span", self._span())
        set_checked("encoded_call", self.stored_call or self._encoded())

    @property
    def is_tracked(self) -> bool:
        """Whether its runs depend on those before: it is counted, or does not overlap."""
        return self.repeats is not None or self.overlap != "allow"

    def following(self, last: datetime, present: datetime) -> datetime | None:
        """Return the slot to enqueue after ``last``: one that was missed, or the next one; ``None``
        if there is none."""
        return self.span.following(self.catch_up, last, present)

    def configured_task(self) -> Any:
        """Return the task with the queue and the priority of this definition."""
        given = {"queue_name": self.queue_name, "priority": self.priority}
        changes = {name: value for name, value in given.items() if value is not None}
        return self.task.using(**changes) if changes else self.task

    def call(self) -> tuple[Sequence[object], Mapping[str, object]]:
        """Return the arguments of the next run; those of a row with its model instances fetched.

        Raises ``arguments.DeserializationError``, and the errors of the models' databases.
        """
        if self.stored_call is None:
            return self.args, self.kwargs
        return arguments.decode_call(self.stored_call, resolve_models=True)

    def _check_single_run(self) -> None:
        overlap = None if self.overlap == "allow" else self.overlap
        validators.check_single_run(
            self.key,
            self.schedule,
            starts_at=self.starts_at,
            ends_at=self.ends_at,
            repeats=self.repeats,
            overlap=overlap,
        )

    def _span(self) -> Span:
        return validators.checked_span(self.key, self.schedule, self.starts_at, self.ends_at)

    def _encoded(self) -> str:
        try:
            return arguments.encode_call(self.args, self.kwargs)
        except arguments.TaskArgumentError as error:
            raise ValueError(f"the recurring task {self.key!r}: {error}") from error


_registry: dict[str, RecurringDefinition] = {}


def recurring(
    *,
    schedule: str | timedelta | datetime,
    key: str,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    timezone: str | None = None,
    description: str | None = None,
    catch_up: CatchUp = "skip",
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    repeats: int | None = None,
    overlap: Overlap = "allow",
) -> Callable[[TaskT], TaskT]:
    """Enqueue the decorated task automatically whenever ``schedule`` is due.

    ``schedule`` is a cron expression (see ``steady_queue_core.schedules.cron``), evaluated in
    ``timezone``, by default ``settings.TIME_ZONE``; or a timedelta for a fixed interval (see
    ``steady_queue_core.schedules.interval``); or a datetime for a single run. ``key`` names this
    schedule and is unique in the project. A task can have several schedules. ``description`` is by
    default the first line of the task's docstring. ``catch_up`` decides about slots that pass while
    no scheduler runs: ``"skip"`` them, run the ``"last"`` one, or run all that are not older than a
    timedelta.

    There are slots from ``starts_at`` to ``ends_at``, and at most ``repeats`` runs. ``overlap``
    decides about a run that is due while the previous one has not ended: ``"allow"`` it, ``"skip"``
    it, or ``"queue"`` it until then.

    Raises ValueError for an invalid value or a key that is taken, and TypeError if the decorated
    object is not a task or a value has the wrong type; both while the module is imported.
    """

    def decorate(task: TaskT) -> TaskT:
        if not is_task(task):
            raise TypeError(
                f"@recurring(key={key!r}) decorates {task!r}, which is not a task; "
                "put it above @task(), not below"
            )
        new = RecurringDefinition(
            key=key,
            task=task,
            schedule=validators.checked_schedule(key, schedule, timezone),
            args=args,
            kwargs={} if kwargs is None else kwargs,
            queue_name=queue_name,
            priority=priority,
            description=validators.description_of(task) if description is None else description,
            catch_up=catch_up,
            starts_at=starts_at,
            ends_at=ends_at,
            repeats=repeats,
            overlap=overlap,
        )
        require_runnable(new)
        _register(new)
        return task

    return decorate


def require_runnable(definition: RecurringDefinition) -> None:
    """Raise ValueError if the task cannot be run with its arguments, queue and priority."""
    require_configurable(definition)
    validators.check_fit(definition.key, definition.task, definition.args, definition.kwargs)


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
