"""Recurring tasks defined in code, and the rows that mirror them in the database."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configured_backends import recurring_tasks_on
from ...dialects import Dialect, portable
from ...logging import about, get_logger
from ...models import RecurringTask
from ...schedules.stored import TIMING, row_of
from .obsolete import remove_obsolete
from .run_track import COLUMNS
from .task_rows import read_rows

logger = get_logger("steady_queue.scheduler")

#: Columns that an update leaves alone, since the code does not know them: when the row was created,
#: since when its slots count, whether the task is disabled, and what its runs have changed.
UNMIRRORED = ("key", "created_at", "active_since", "enabled", *COLUMNS)


def mirror(connection: BaseDatabaseWrapper, dialect: Dialect) -> bool:
    """Replace the rows of the recurring tasks that were in code with those that are now; return
    whether some are left to ``tidy`` later.

    A disabled task stays disabled, and one whose runs are counted stays as it is. Their rows stay
    even if the code does not define the task: this may be the older code during a rolling release.
    So do those of tasks that a living scheduler has in its code.
    """
    present = portable.storable(dialect.current_time(connection))
    rows = [
        row_of(definition, present, static=True)
        for definition in recurring_tasks_on(connection.alias)
    ]
    keys = [row.key for row in rows]
    fields = [field.attname for field in RecurringTask._meta.concrete_fields]
    mirrored = [name for name in fields if name not in UNMIRRORED]
    stored = RecurringTask.objects.using(connection.alias)
    with dialect.transaction(connection):
        has_left = remove_obsolete(connection.alias, keys)
        known = dialect.lock_rows(
            connection, stored.filter(key__in=keys).order_by("key"), wait=True
        )
        before = {row[0]: row for row in read_rows(known, ("key", "static", *TIMING, "overlap"))}
        dialect.upsert(connection, rows, ["key"], mirrored)
        # A new schedule has missed no slot so far.
        rescheduled = [row.key for row in rows if before.get(row.key, ())[:-1] != _unchanged(row)]
        stored.filter(key__in=rescheduled).update(active_since=present)
        replaced = [key for key, static, *_ in before.values() if static is False]
        if replaced:
            stored.filter(key__in=replaced).update(runs=0)
        others = [row.key for row in rows if row.overlap != before.get(row.key, (row.overlap,))[-1]]
        if others:
            # Under another policy, the last run may not have been noted.
            stored.filter(key__in=others).update(last_job_id=None, waiting_at=None)
    for key in replaced:
        logger.warning(
            "Recurring task %r in code replaces the one that was added at run time",
            key,
            extra=about("recurring.replaced", recurring_key=key),
        )
    return has_left


def tidy(connection: BaseDatabaseWrapper, dialect: Dialect) -> bool:
    """Remove the rows that were left to other schedulers, which may have ended since; return
    whether some are left still."""
    keys = [definition.key for definition in recurring_tasks_on(connection.alias)]
    with dialect.transaction(connection):
        return remove_obsolete(connection.alias, keys)


def warn_of_unscheduled(connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
    """Warn of tasks that were added at run time if no scheduler enqueues them."""
    count = RecurringTask.objects.using(connection.alias).filter(static=False).count()
    if count:
        logger.warning(
            "Recurring tasks that were added at run time (%d) are not scheduled: "
            "STEADY_QUEUE['scheduler']['dynamic_tasks_enabled'] is not set",
            count,
            extra=about("recurring.not_scheduled", rows=count),
        )


def _unchanged(row: RecurringTask) -> tuple[object, ...]:
    return row.key, True, *(getattr(row, name) for name in TIMING)
