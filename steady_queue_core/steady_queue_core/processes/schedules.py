"""The schedules of the code: which a database has to do with, and their mirror in it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from ..backend import own_backends
from ..dialects import Dialect, portable
from ..models import RecurringTask
from ..recurring_rows import row_of
from ..recurring_task import RecurringTask as Definition
from ..recurring_task import registered

logger = logging.getLogger("steady_queue.scheduler")

#: What the code does not know: since when the row is there, and whether somebody has disabled it.
KEPT = ("key", "created_at", "enabled")


def registered_on(using: str) -> list[Definition]:
    """Return those whose jobs are stored in the database ``using``, by a backend of ours."""
    databases = {alias: backend.database for alias, backend in own_backends().items()}
    return [each for each in registered() if databases.get(each.task.backend) == using]


def mirror(connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
    """Store them for people to see, in place of all that the code had before.

    One that is disabled stays so. It keeps its row even while the code does not have it: the code
    may be the older one of a release under way.
    """
    present = portable.storable(dialect.current_time(connection))
    rows = [
        row_of(definition, present, static=True) for definition in registered_on(connection.alias)
    ]
    keys = [row.key for row in rows]
    fields = [field.attname for field in RecurringTask._meta.concrete_fields]
    stored = RecurringTask.objects.using(connection.alias)
    with dialect.transaction(connection):
        stored.filter(static=True, enabled=True).exclude(key__in=keys).delete()
        known = (
            stored.filter(key__in=keys)
            .order_by("key")
            .only("key", "schedule", "timezone", "static", "active_since")
        )
        before = {row.key: row for row in dialect.lock_rows(connection, known, wait=True)}
        for row in rows:
            _take_over(row, before, present)
        dialect.upsert(connection, rows, ["key"], [name for name in fields if name not in KEPT])


def warn_of_idle(connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
    """Say that there are tasks which were added at run time, where no scheduler looks at them."""
    idle = RecurringTask.objects.using(connection.alias).filter(static=False).count()
    if idle:
        logger.warning(
            "%d recurring tasks were added at run time and are not scheduled: "
            "STEADY_QUEUE['scheduler']['dynamic_tasks_enabled'] is not set",
            idle,
        )


def _take_over(row: RecurringTask, before: Mapping[str, RecurringTask], present: datetime) -> None:
    """Keep what is known of the slots of an unchanged schedule."""
    known = before.get(row.key)
    if known is None:
        return
    if not known.static:
        logger.warning(
            "Recurring task %r of the code takes the place of the one that was added at run time",
            row.key,
        )
    elif (known.schedule, known.timezone) == (row.schedule, row.timezone):
        row.active_since = known.active_since
