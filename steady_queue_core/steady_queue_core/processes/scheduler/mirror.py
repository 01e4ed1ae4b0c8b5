"""The schedules of the code: which a database has to do with, and their mirror in it."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configured_backends import recurring_tasks_on
from ...dialects import Dialect, portable
from ...logging import about, get_logger
from ...models import RecurringTask
from ...schedules.stored import TIMING, row_of

logger = get_logger("steady_queue.scheduler")

#: What the code does not know: since when the row is there, since when its slots count, and whether
#: somebody has disabled it.
KEPT = ("key", "created_at", "active_since", "enabled")


def mirror(connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
    """Store them for people to see, in place of all that the code had before.

    One that is disabled stays so. It keeps its row even while the code does not have it: the code
    may be the older one of a release under way.
    """
    present = portable.storable(dialect.current_time(connection))
    rows = [
        row_of(definition, present, static=True)
        for definition in recurring_tasks_on(connection.alias)
    ]
    keys = [row.key for row in rows]
    fields = [field.attname for field in RecurringTask._meta.concrete_fields]
    stored = RecurringTask.objects.using(connection.alias)
    with dialect.transaction(connection):
        stored.filter(static=True, enabled=True).exclude(key__in=keys).delete()
        known = stored.filter(key__in=keys).order_by("key").values_list("key", "static", *TIMING)
        before = {row[0]: row for row in dialect.lock_rows(connection, known, wait=True)}
        dialect.upsert(connection, rows, ["key"], [name for name in fields if name not in KEPT])
        # Another schedule has missed nothing before now.
        anew = [row.key for row in rows if before.get(row.key) != _unchanged(row)]
        stored.filter(key__in=anew).update(active_since=present)
    for key, static, *_ in before.values():
        if not static:
            logger.warning(
                "Recurring task %r of the code takes the place of the one that was added at run "
                "time",
                key,
                extra=about("recurring.replaced", recurring_key=key),
            )


def warn_of_idle(connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
    """Say that there are tasks which were added at run time, where no scheduler looks at them."""
    idle = RecurringTask.objects.using(connection.alias).filter(static=False).count()
    if idle:
        logger.warning(
            "Recurring tasks that were added at run time (%d) are not scheduled: "
            "STEADY_QUEUE['scheduler']['dynamic_tasks_enabled'] is not set",
            idle,
            extra=about("recurring.not_scheduled", rows=idle),
        )


def _unchanged(row: RecurringTask) -> tuple[object, ...]:
    return row.key, True, *(getattr(row, name) for name in TIMING)
