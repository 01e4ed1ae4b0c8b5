"""Adds, changes and removes recurring tasks while the queue runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, Unpack

from django.db.transaction import on_commit

from .compat import DEFAULT_TASK_BACKEND_ALIAS
from .configuration import ConfigurationError
from .configured_backends import options_on, own_backends
from .dialects import portable
from .dialects.database import Database
from .errors import (
    RecurringTaskError,
    RecurringTaskExistsError,
    StaticRecurringTaskError,
    UnknownRecurringTaskError,
)
from .logging import about, get_logger
from .models import RecurringTask
from .schedules.definition import (
    define,
    is_registered,
    is_task,
    require_known,
    require_runnable,
)
from .schedules.stored import DEFINING, TIMING, change, definition_of, row_of, unusable
from .schedules.values import Changes, Options, RecurringDefinition
from .sharding.schedules import alone, placed
from .sharding.shards import shards_of

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
    database = _database(definition.task.backend)
    _require_dynamic(key, not is_registered(key))
    try:
        require_runnable(definition)
    except ValueError as error:
        raise unusable(key, error) from error

    def store() -> RecurringTask:
        now = database.current_time()
        row = row_of(definition, portable.storable(now), static=False)
        definition_of(row)
        _require_run(definition, now)
        if database.insert_if_absent(row, ["key"]):
            return row
        if not replace:
            raise _taken(database, key)
        stored = _locked(database, key)
        before = _state(stored)
        for name in DEFINING:
            setattr(stored, name, getattr(row, name))
        stored.runs = 0
        return _updated(database, stored, before)

    row = database.in_transaction(store)
    warn = partial(_warn_unless_enabled, key, database.alias)
    if database.connection.in_atomic_block:
        on_commit(warn, using=database.alias)
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
    database = _database(_place_of(key, backend))
    with database.transaction():
        row = _locked(database, key)
        before = _state(row)
        change(row, changes)
        definition = definition_of(row)
        if _state(row).timing != before.timing:
            _require_run(definition, database.current_time())
        return _updated(database, row, before)


def unschedule_recurring_task(key: str, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> None:
    """Remove a recurring task that was added at run time. Its enqueued jobs stay.

    Raises ``UnknownRecurringTaskError`` and ``StaticRecurringTaskError``.
    """
    database = _database(_place_of(key, backend))
    with database.transaction():
        _locked(database, key, "static").delete(using=database.alias)


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


def _database(backend: str) -> Database:
    ours = own_backends()
    if backend not in ours:
        raise ValueError(
            f"{backend!r} is no Steady Queue backend in TASKS. "
            f"There are: {', '.join(sorted(ours)) or 'none'}."
        )
    return Database.of(ours[backend].database)


def _taken(database: Database, key: str) -> RecurringTaskError:
    # Not locked: on MySQL, several transactions that found the row would deadlock here.
    row = RecurringTask.objects.using(database.alias).filter(pk=key).first()
    if row is not None and row.static:
        return _static(key)
    return RecurringTaskExistsError(
        f"There is a recurring task {key!r} already. Change it with change_recurring_task(), or "
        "give replace=True."
    )


def _locked(database: Database, key: str, *columns: str) -> RecurringTask:
    """Return the row of a dynamic task, locked until the end of the transaction; with ``columns``,
    these alone: others may be damaged."""
    _require_dynamic(key, not is_registered(key))
    rows = RecurringTask.objects.using(database.alias).filter(pk=key)
    rows = rows.only(*columns) if columns else rows
    row = database.lock_rows(rows, wait=True).first()
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


def _require_run(definition: RecurringDefinition, present: datetime) -> None:
    """Raise ValueError if no slot follows."""
    if definition.span.next_after(present) is None:
        until = "" if definition.ends_at is None else f" until {definition.ends_at}"
        raise ValueError(
            f"the recurring task {definition.key!r} would never run: it is {present}, and "
            f"{definition.schedule.expression!r} has no run after that{until}. Give a later time; "
            "to run it now, enqueue the task."
        )


class _State(NamedTuple):
    """What decides about the runs of a row so far."""

    timing: tuple[Any, ...]
    overlap: str


def _state(row: RecurringTask) -> _State:
    return _State(tuple(getattr(row, name) for name in TIMING), row.overlap)


def _updated(database: Database, row: RecurringTask, before: _State) -> RecurringTask:
    """Store a row that has changed."""
    now = _state(row)
    row.updated_at = database.storable_time()
    if now.overlap != before.overlap:
        # Under another policy, the last run may not have been noted.
        row.last_job_id = row.waiting_at = None
    if now.timing != before.timing:
        # Slots of the new schedule before this instant were never missed.
        row.active_since = row.updated_at
    of_runs = ("runs", "last_job_id", "waiting_at")
    changed = [*DEFINING, *of_runs, "active_since", "updated_at"]
    row.save(using=database.alias, update_fields=changed)
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
