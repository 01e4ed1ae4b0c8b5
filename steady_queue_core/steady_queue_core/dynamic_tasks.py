"""Adds, changes and removes recurring tasks while the queue runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Unpack

from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import on_commit

from . import arguments
from .compat import DEFAULT_TASK_BACKEND_ALIAS
from .configuration import ConfigurationError
from .configured_backends import options_on, own_backends
from .dialects import Dialect, dialect_for, portable
from .errors import (
    RecurringTaskError,
    RecurringTaskExistsError,
    StaticRecurringTaskError,
    UnknownRecurringTaskError,
)
from .logging import about, get_logger
from .models import RecurringTask
from .schedules import catch_up as policies
from .schedules import validators
from .schedules.cron import split_zone
from .schedules.definition import (
    define,
    is_registered,
    is_task,
    require_known,
    require_runnable,
)
from .schedules.interval import EVERY
from .schedules.once import AT
from .schedules.span import policy_for
from .schedules.stored import (
    DEFINING,
    TIMING,
    definition_of,
    is_count,
    opened_arguments,
    row_of,
    seal_arguments,
    unusable,
)
from .schedules.values import VALUES, Changes, Options, RecurringDefinition, Value
from .sharding.schedules import alone, placed
from .sharding.shards import shards_of

#: How often a deadlock is retried before the error reaches the caller.
TRIES = 5

logger = get_logger("steady_queue.scheduler")


def schedule_recurring_task(
    key: str,
    task: Any,
    *,
    schedule: str | timedelta | datetime,
    replace: bool = False,
    **options: Unpack[Options],
) -> RecurringTask:
    """Add a recurring task at run time; return its row.

    The options are those of ``@recurring``. With ``replace``, they replace those of a task that
    was added earlier under the same key, and its runs are counted anew; a disabled task stays
    disabled. The row is stored in the caller's transaction if there is one.

    Raises ``RecurringTaskExistsError`` if the key is taken, ``StaticRecurringTaskError`` if the
    code defines a task of this key, ``UnusableRecurringTaskError`` if the task could not be run,
    and ValueError or TypeError for invalid values, also if there would be no run any more.
    """
    require_known("schedule_recurring_task", options, Options)
    if not is_task(task):
        raise TypeError(f"schedule_recurring_task({key!r}): {task!r} is not a task")
    definition = define(key, task, schedule, **options)
    with alone(key, task.backend):
        return _add(placed(definition, _shard_with(key, task.backend)), replace=replace)


def _add(definition: RecurringDefinition, *, replace: bool) -> RecurringTask:
    """Store a recurring task in the database of its backend."""
    key = definition.key
    connection, dialect = _database(definition.task.backend)
    _require_dynamic(key, not is_registered(key))
    try:
        require_runnable(definition)
    except ValueError as error:
        raise unusable(key, error) from error

    def store() -> RecurringTask:
        with dialect.transaction(connection):
            now = dialect.current_time(connection)
            row = row_of(definition, portable.storable(now), static=False)
            definition_of(row)
            _require_run(definition, now)
            if dialect.insert_if_absent(connection, row, ["key"]):
                return row
            if not replace:
                raise _taken(connection, key)
            stored = _locked(connection, dialect, key)
            before = _timing(stored), stored.overlap
            for name in DEFINING:
                setattr(stored, name, getattr(row, name))
            stored.runs = 0
            return _updated(connection, dialect, stored, before)

    row = _again_after_deadlocks(connection, dialect, store)
    warn = partial(_warn_unless_enabled, key, connection.alias)
    if connection.in_atomic_block:
        on_commit(warn, using=connection.alias)
    else:
        warn()
    return row


def change_recurring_task(
    key: str, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS, **changes: Unpack[Changes]
) -> RecurringTask:
    """Change a recurring task that was added at run time; return its row.

    The changes are those of the options of ``@recurring`` and of the schedule; ``None`` leaves a
    value unchanged, but takes away ``starts_at``, ``ends_at`` and ``repeats``. ``args`` and
    ``kwargs`` belong together: passing one of them empties the other unless it is passed as well.
    Runs that ``repeats`` has counted so far still count. ``backend`` is the alias of the task's
    backend in ``TASKS``.

    Raises ``UnknownRecurringTaskError``, ``StaticRecurringTaskError``,
    ``UnusableRecurringTaskError`` if the task cannot be run with these values, and ValueError or
    TypeError for invalid values.
    """
    require_known("change_recurring_task", changes, Changes)
    connection, dialect = _database(_place_of(key, backend))
    with dialect.transaction(connection):
        row = _locked(connection, dialect, key)
        before = _timing(row), row.overlap
        # Before the columns change that a signature covers.
        row.arguments = _changed_arguments(row, changes.get("args"), changes.get("kwargs"))
        with validators.naming(key):
            _reschedule(row, changes.get("schedule"), changes.get("timezone"))
            for value in VALUES:
                if _is_given(value, changes):
                    _change(row, value, value.checked(changes.get(value.name)))
        seal_arguments(row)
        definition = definition_of(row)
        if _timing(row) != before[0]:
            _require_run(definition, dialect.current_time(connection))
        return _updated(connection, dialect, row, before)


def unschedule_recurring_task(key: str, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> None:
    """Remove a recurring task that was added at run time. Its enqueued jobs stay.

    Raises ``UnknownRecurringTaskError`` and ``StaticRecurringTaskError``.
    """
    connection, dialect = _database(_place_of(key, backend))
    with dialect.transaction(connection):
        _locked(connection, dialect, key, "static").delete(using=connection.alias)


def _shard_with(key: str, backend: str) -> str | None:
    """Return the shard of a sharded backend that has a recurring task of this key; ``None``: none
    has, or it is no sharded one."""
    for shard in shards_of(backend):
        if RecurringTask.objects.using(shard.database).filter(pk=key).exists():
            return shard.alias
    return None


def _place_of(key: str, backend: str) -> str:
    """Return the backend in whose database a dynamic task is, if there is one."""
    anywhere = next((each.alias for each in shards_of(backend)), backend)
    return _shard_with(key, backend) or anywhere


def _database(backend: str) -> tuple[BaseDatabaseWrapper, Dialect]:
    ours = own_backends()
    if backend not in ours:
        raise ValueError(
            f"{backend!r} is no Steady Queue backend in TASKS. "
            f"There are: {', '.join(sorted(ours)) or 'none'}."
        )
    using = ours[backend].database
    return connections[using], dialect_for(using)


def _again_after_deadlocks(
    connection: BaseDatabaseWrapper, dialect: Dialect, do: Callable[[], RecurringTask]
) -> RecurringTask:
    """Call ``do`` and retry it after deadlocks, except inside the caller's transaction."""
    for _ in range(TRIES):
        try:
            return do()
        except DatabaseError as error:
            if connection.in_atomic_block or not dialect.is_contention(connection, error):
                raise
    return do()


def _taken(connection: BaseDatabaseWrapper, key: str) -> RecurringTaskError:
    # Not locked: on MySQL, several transactions that found the row would deadlock here.
    row = RecurringTask.objects.using(connection.alias).filter(pk=key).first()
    if row is not None and row.static:
        return _static(key)
    return RecurringTaskExistsError(
        f"There is a recurring task {key!r} already. Change it with change_recurring_task(), or "
        "give replace=True."
    )


def _locked(
    connection: BaseDatabaseWrapper, dialect: Dialect, key: str, *columns: str
) -> RecurringTask:
    """Return the row of a dynamic task, locked until the end of the transaction; with ``columns``,
    these alone: others may be damaged."""
    _require_dynamic(key, not is_registered(key))
    rows = RecurringTask.objects.using(connection.alias).filter(pk=key)
    rows = rows.only(*columns) if columns else rows
    row = dialect.lock_rows(connection, rows, wait=True).first()
    if row is None:
        raise UnknownRecurringTaskError(f"There is no recurring task {key!r}.")
    _require_dynamic(key, not row.static)
    return row


def _require_dynamic(key: str, dynamic: bool) -> None:
    if not dynamic:
        raise _static(key)


def _static(key: str) -> StaticRecurringTaskError:
    return StaticRecurringTaskError(
        f"The recurring task {key!r} is defined in the code, with @recurring: change or remove "
        "it there. At run time it can be disabled: "
        f"RecurringTask.objects.get(key={key!r}).disable()."
    )


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


def _change(row: RecurringTask, value: Value, changed: Any) -> None:
    """Change the column of a checked value."""
    if value.name == "repeats":
        _count_on(row, changed)
    setattr(row, value.name, value.stored(changed))


def _count_on(row: RecurringTask, repeats: int | None) -> None:
    """Have the runs so far count for ``repeats``, if they were counted."""
    if row.repeats is None or not is_count(row.runs):
        row.runs = 0
    elif repeats is not None and repeats < row.runs:
        raise ValueError(
            f"repeats is {repeats}, but there were {row.runs} runs so far. Give a larger number, "
            "or disable or remove the task."
        )


def _require_run(definition: RecurringDefinition, present: datetime) -> None:
    """Raise ValueError if no slot follows."""
    if definition.span.next_after(present) is None:
        until = "" if definition.ends_at is None else f" until {definition.ends_at}"
        raise ValueError(
            f"the recurring task {definition.key!r} would never run: it is {present}, and "
            f"{definition.schedule.expression!r} has no run after that{until}. Give a later time; "
            "to run it now, enqueue the task."
        )


def _timing(row: RecurringTask) -> list[Any]:
    return [getattr(row, name) for name in TIMING]


def _updated(
    connection: BaseDatabaseWrapper,
    dialect: Dialect,
    row: RecurringTask,
    before: tuple[list[Any], str],
) -> RecurringTask:
    timing, overlap = before
    row.updated_at = portable.storable(dialect.current_time(connection))
    if row.overlap != overlap:
        # Under another policy, the last run may not have been noted.
        row.last_job_id = row.waiting_at = None
    if _timing(row) != timing:
        # Slots of the new schedule before this instant were never missed.
        row.active_since = row.updated_at
    of_runs = ("runs", "last_job_id", "waiting_at")
    changed = [*DEFINING, *of_runs, "active_since", "updated_at"]
    row.save(using=connection.alias, update_fields=changed)
    return row


def _warn_unless_enabled(key: str, using: str) -> None:
    try:
        enabled = options_on(using).scheduler.dynamic_tasks_enabled
    except ConfigurationError:
        return  # The system checks report it.
    if not enabled:
        logger.warning(
            "Recurring task %r is stored, but STEADY_QUEUE['scheduler']['dynamic_tasks_enabled'] "
            "is not set: a scheduler with these settings does not look at it",
            key,
            extra=about("recurring.not_scheduled", recurring_key=key),
        )
