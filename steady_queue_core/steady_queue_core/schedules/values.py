"""A recurring task as a value, and each of its values declared once: how it is checked, how its
column holds it, and what forms and pages call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from types import EllipsisType
from typing import Annotated, Any, Protocol, TypedDict, get_type_hints, runtime_checkable

from .. import arguments
from ..dialects import portable
from . import policies, validators
from .once import checked_instant
from .policies import CatchUp, Overlap
from .span import AnySchedule, Span, policy_for

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
MOST_REPEATS = 2**31 - 1


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


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Value:
    """A value of a recurring task that has a column of its name."""

    check: Callable[[str, Any], Any]
    """``check(name, value)`` returns the valid value, or raises TypeError or ValueError."""
    label: str
    help: str = ""
    to_column: Callable[[Any], Any] = _same
    from_column: Callable[[Any], Any] = _same
    is_timing: bool = False
    """Whether it decides when the task is due."""
    is_for_several: bool = False
    """Whether it means nothing for a task that runs once."""
    name: str = ""
    default: Any = None

    def checked(self, value: object) -> Any:
        """Return the valid value; ``None`` is valid if it is the default."""
        return None if value is self.default is None else self.check(self.name, value)

    def stored(self, value: Any) -> Any:
        """Return what the column holds for a valid value."""
        return None if value is None else self.to_column(value)

    def read(self, stored: Any) -> Any:
        """Return the value that the column holds, unchecked."""
        return None if stored is None else self.from_column(stored)


#: One end of the time in which there are runs.
BOUND = partial(
    Value,
    checked_instant,
    help="Such as 2030-12-24 18:00, in the current time zone, or 2030-12-24T18:00+01:00.",
    to_column=portable.storable,
    from_column=portable.aware,
    is_timing=True,
    is_for_several=True,
)


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
    queue_name: Annotated[str | None, Value(validators.checked_queue_name, "Queue")] = None
    """None: the task's own."""
    priority: Annotated[
        int | None,
        Value(
            validators.integer(LOWEST_PRIORITY, HIGHEST_PRIORITY),
            "Priority",
            f"From {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}, larger first.",
        ),
    ] = None
    """None: the task's own."""
    description: Annotated[str, Value(validators.checked_string, "Description")] = ""
    starts_at: Annotated[datetime | None, BOUND("Starts")] = None
    ends_at: Annotated[datetime | None, BOUND("Ends")] = None
    """The first and the last instant that may be a slot."""
    repeats: Annotated[
        int | None,
        Value(
            validators.integer(1, MOST_REPEATS),
            "Repeats",
            "How many runs are enqueued; empty for any number.",
            is_for_several=True,
        ),
    ] = None
    """How many runs are enqueued; None: any number."""
    catch_up: Annotated[
        CatchUp,
        Value(
            validators.checked_catch_up,
            "Missed runs",
            "What happens to runs that are due while no scheduler runs: skip, last, or how old "
            "they may be to be made up for, such as 36 hours.",
            to_column=policies.to_text,
            from_column=policies.from_text,
        ),
    ] = "skip"
    """Which of the slots that pass while no scheduler runs are made up for. A single run is never
    skipped: ``"skip"`` is ``"last"`` there."""
    overlap: Annotated[
        Overlap,
        Value(
            validators.checked_overlap,
            "Overlapping runs",
            "A run that is due while the one before has not ended: it may run as well, is "
            "skipped, or waits.",
            is_for_several=True,
        ),
    ] = "allow"
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
        with validators.naming(self.key):
            set_checked("args", validators.checked_args(self.args))
            set_checked("kwargs", validators.checked_kwargs(self.kwargs))
            for each in VALUES:
                set_checked(each.name, each.checked(getattr(self, each.name)))
            set_checked("catch_up", policy_for(self.schedule, self.catch_up))
            validators.check_single_run(self.schedule, self._limits())
            set_checked(
                "span", validators.checked_span(self.schedule, self.starts_at, self.ends_at)
            )
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

    def _limits(self) -> list[str]:
        """Return the names of the values that are given for several runs."""
        of_several = (each for each in VALUES if each.is_for_several)
        return [each.name for each in of_several if getattr(self, each.name) != each.default]

    def _encoded(self) -> str:
        try:
            return arguments.encode_call(self.args, self.kwargs)
        except arguments.TaskArgumentError as error:
            raise ValueError(f"the recurring task {self.key!r}: {error}") from error


def _declared() -> Iterator[Value]:
    for name, hint in get_type_hints(RecurringDefinition, include_extras=True).items():
        for value in getattr(hint, "__metadata__", ()):
            yield replace(value, name=name, default=getattr(RecurringDefinition, name))


#: The values that have a column of their name.
VALUES = tuple(_declared())


class Values(TypedDict, total=False):
    """The values that ``@recurring`` takes, and those that it fills in."""

    args: Sequence[object]
    queue_name: str | None
    priority: int | None
    catch_up: CatchUp
    starts_at: datetime | None
    ends_at: datetime | None
    repeats: int | None
    overlap: Overlap


class Options(Values, total=False):
    """What ``@recurring`` takes beside the key and the schedule."""

    kwargs: Mapping[str, object] | None
    timezone: str | None
    description: str | None


class Changes(TypedDict, total=False):
    """What ``change_recurring_task()`` changes: ``None`` leaves a value as it is, but takes away
    one that may be missing, which ``...`` leaves."""

    schedule: str | timedelta | datetime | None
    args: Sequence[object] | None
    kwargs: Mapping[str, object] | None
    queue_name: str | None
    priority: int | None
    timezone: str | None
    description: str | None
    catch_up: CatchUp | None
    starts_at: datetime | EllipsisType | None
    ends_at: datetime | EllipsisType | None
    repeats: int | EllipsisType | None
    overlap: Overlap | None
