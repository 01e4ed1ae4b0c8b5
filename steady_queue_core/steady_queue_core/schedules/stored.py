"""Recurring tasks as rows: written from definitions, changed, and validated when they are read.

A row chooses among the registered tasks. It never decides what is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .. import arguments
from ..compat import task_backends
from ..dialects import portable
from ..errors import UnusableRecurringTaskError
from ..models import RecurringTask
from ..payloads import recurring_scope
from ..payloads.backends import codec_of
from ..tasks.model_arguments import require_permitted_models
from ..tasks.registry import find_task
from . import policies, validators
from .cron import Schedule, split_zone
from .definition import find, require_configurable
from .interval import EVERY, Interval
from .once import AT, Once
from .span import AnySchedule, Span, policy_for
from .values import VALUES, Changes, RecurringDefinition, Value

#: Columns that decide when a recurring task is due.
TIMING = ("schedule", "timezone", *(each.name for each in VALUES if each.is_timing))
#: Columns that hold the definition, beside the key.
DEFINING = (
    *TIMING,
    "task_path",
    "arguments",
    "backend_name",
    *(each.name for each in VALUES if not each.is_timing),
)
#: Those that decide when and how it is enqueued.
ENQUEUING = tuple(name for name in DEFINING if name != "description")


def row_of(definition: RecurringDefinition, present: datetime, *, static: bool) -> RecurringTask:
    """Return the row of a definition, created ``present``, an instant in its stored form."""
    task = definition.configured_task()
    row = RecurringTask(
        key=definition.key,
        task_path=task.module_path,
        schedule=definition.schedule.expression,
        timezone=definition.schedule.timezone_name,
        arguments=definition.encoded_call,
        backend_name=task.backend,
        static=static,
        enabled=True,
        active_since=present,
        created_at=present,
        updated_at=present,
        **{each.name: each.stored(getattr(definition, each.name)) for each in VALUES},
    )
    row.queue_name, row.priority = task.queue_name, task.priority
    seal_arguments(row)
    return row


def opened_arguments(row: RecurringTask) -> str:
    """Return the encoded arguments of a row. Raises ``PayloadError``."""
    codec = codec_of(row.backend_name)
    return row.arguments if codec is None else codec.open(row.arguments, recurring_scope(row))


def seal_arguments(row: RecurringTask) -> None:
    """Put the encoded arguments of a row into their stored form, once its other columns are set."""
    codec = codec_of(row.backend_name)
    if codec is not None:
        row.arguments = codec.seal(row.arguments, recurring_scope(row))


def definition_in_force(row: RecurringTask) -> RecurringDefinition:
    """Return the definition in the code for a row's key or, if there is none, that of the row.

    Raises ``UnusableRecurringTaskError``.
    """
    defined = find(row.key)
    if defined is not None:
        return defined
    if row.static:
        raise UnusableRecurringTaskError(
            f"The recurring task {row.key!r} cannot be run: it is defined in the code, "
            "with @recurring, and this process has no such code."
        )
    return definition_of(row)


def definition_of(row: RecurringTask) -> RecurringDefinition:
    """Return the definition in a row. Raises ``UnusableRecurringTaskError`` with the reason.

    Queries no database: model instances among the arguments are fetched at each enqueue.
    """
    try:
        return _definition_of(row)
    except Exception as error:  # A manual edit may have put anything into the row.
        raise unusable(row.key, error) from error


def unusable(key: str, error: Exception) -> UnusableRecurringTaskError:
    """Return the error for a recurring task that cannot be run because of ``error``."""
    reason = str(error).removeprefix(f"the recurring task {key!r}: ")
    return UnusableRecurringTaskError(f"The recurring task {key!r} cannot be run: {reason}")


def _definition_of(row: RecurringTask) -> RecurringDefinition:
    backend: Any = task_backends[row.backend_name]
    if not hasattr(backend, "enqueue_recurring"):
        raise ValueError(f"{row.backend_name!r} is no Steady Queue backend in TASKS")
    text = opened_arguments(row)
    if len(text) > backend.payload_limits.max_bytes:
        raise ValueError(
            f"its arguments have {len(text)} bytes, more than the "
            f"{backend.payload_limits.max_bytes} of max_payload_bytes"
        )
    args, kwargs = arguments.decode_call(text, resolve_models=False)
    task = find_task(row.task_path)
    require_permitted_models(task, args, kwargs, backend.settings.argument_models)
    definition = RecurringDefinition(
        key=row.key,
        task=task.using(backend=row.backend_name),
        schedule=stored_schedule(row.schedule, row.timezone),
        stored_call=text,
        **{each.name: each.read(getattr(row, each.name)) for each in VALUES},
    )
    require_configurable(definition)
    validators.check_fit(task, args, kwargs)
    return definition


def change(row: RecurringTask, changes: Changes) -> None:
    """Change the columns of a row. Raises ``UnusableRecurringTaskError`` if the present arguments
    are unreadable, and ValueError or TypeError for invalid values."""
    # Before the columns change that a signature covers.
    row.arguments = _changed_arguments(row, changes.get("args"), changes.get("kwargs"))
    with validators.naming(row.key):
        _reschedule(row, changes.get("schedule"), changes.get("timezone"))
        for value in VALUES:
            if _is_given(value, changes):
                changed = value.checked(changes.get(value.name))
                if value.name == "repeats":
                    _count_on(row, changed)
                setattr(row, value.name, value.stored(changed))
    seal_arguments(row)


def _changed_arguments(
    row: RecurringTask, args: Sequence[object] | None, kwargs: Mapping[str, object] | None
) -> str:
    """Return the encoded arguments: the new ones, or those of the row."""
    if args is None and kwargs is None:
        try:
            return opened_arguments(row)
        except arguments.DeserializationError as error:
            raise unusable(row.key, error) from error
    with validators.naming(row.key):
        args, kwargs = validators.checked_args(args or ()), validators.checked_kwargs(kwargs)
    return arguments.encode_call(args, kwargs)


def _reschedule(
    row: RecurringTask, schedule: str | timedelta | datetime | None, timezone: str | None
) -> None:
    """Change the schedule of a row, or its time zone alone."""
    has_zone = not row.schedule.startswith((EVERY, AT))
    if schedule is None and timezone is None:
        return
    if schedule is None:
        if not has_zone:
            kind = "an interval" if row.schedule.startswith(EVERY) else "a single run"
            raise ValueError(f"{kind} has no time zone")
        schedule = row.schedule
    elif timezone is None and isinstance(schedule, str) and has_zone:
        timezone = split_zone(schedule)[1] or row.timezone
    new = validators.checked_schedule(schedule, timezone)
    row.schedule, row.timezone = new.expression, new.timezone_name
    row.catch_up = policies.to_text(policy_for(new, policies.from_text(row.catch_up)))


def _is_given(value: Value, changes: Mapping[str, object]) -> bool:
    """Whether a value is to be changed: ``None`` takes it away if its column may be empty."""
    if RecurringTask._meta.get_field(value.name).null:
        return changes.get(value.name, ...) is not ...
    return changes.get(value.name) is not None


def _count_on(row: RecurringTask, repeats: int | None) -> None:
    """Have the runs so far count for ``repeats``, if they were counted."""
    if row.repeats is None or not is_count(row.runs):
        row.runs = 0
    elif repeats is not None and repeats < row.runs:
        raise ValueError(
            f"repeats is {repeats}, but there were {row.runs} runs so far. Give a larger number, "
            "or disable or remove the task."
        )


def is_count(runs: object) -> bool:
    """Whether this is a number of runs, in a column in which SQLite stores anything."""
    return isinstance(runs, int) and runs >= 0


def span_of(row: RecurringTask) -> Span:
    """Return the slots of a row. Raises anything for one with a manual edit."""
    bounds = (each and portable.aware(each) for each in (row.starts_at, row.ends_at))
    return Span(stored_schedule(row.schedule, row.timezone), *bounds)


def stored_schedule(expression: str, timezone: str) -> AnySchedule:
    """Return the schedule that is stored as ``expression``."""
    if expression.startswith(AT):
        return Once.read(expression)
    if expression.startswith(EVERY):
        return Interval.read(expression)
    return Schedule(expression, timezone)
