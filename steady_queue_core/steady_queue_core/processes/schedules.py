"""The schedules of the code: which a database has to do with, and their mirror in it."""

from __future__ import annotations

from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from .. import arguments
from ..backend import own_backends
from ..dialects import Dialect, portable
from ..models import RecurringTask
from ..recurring_task import RecurringTask as Definition
from ..recurring_task import registered


def registered_on(using: str) -> list[Definition]:
    """Return those whose jobs are stored in the database ``using``, by a backend of ours."""
    databases = {alias: backend.database for alias, backend in own_backends().items()}
    return [each for each in registered() if databases.get(each.task.backend) == using]


def mirror(connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
    """Store them for people to see, in place of all that the code had before."""
    present = portable.storable(dialect.current_time(connection))
    rows = [_row(definition, present) for definition in registered_on(connection.alias)]
    fields = [field.attname for field in RecurringTask._meta.concrete_fields]
    changing = [name for name in fields if name not in ("key", "created_at")]
    with dialect.transaction(connection):
        stored = RecurringTask.objects.using(connection.alias).filter(static=True)
        stored.exclude(key__in=[row.key for row in rows]).delete()
        dialect.upsert(connection, rows, ["key"], changing)


def _row(definition: Definition, present: datetime) -> RecurringTask:
    task = definition.configured_task()
    return RecurringTask(
        key=definition.key,
        task_path=task.module_path,
        schedule=definition.schedule.expression,
        timezone=definition.schedule.timezone_name,
        arguments=arguments.encode_call(definition.args, definition.kwargs),
        backend_name=task.backend,
        queue_name=task.queue_name,
        priority=task.priority,
        description=definition.description,
        static=True,
        created_at=present,
        updated_at=present,
    )
