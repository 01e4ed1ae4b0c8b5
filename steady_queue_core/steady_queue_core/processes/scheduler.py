"""Scheduler: enqueues recurring tasks when they are due, each slot once."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from .. import arguments
from ..configuration import Configuration
from ..dialects import Dialect, portable
from ..models import RecurringExecution, RecurringTask
from ..recurring_task import RecurringTask as Definition
from ..recurring_task import registered
from .clock import DatabaseClock
from .database import Unavailable
from .runtime import Runtime

logger = logging.getLogger("steady_queue.scheduler")

#: Longest sleep, in seconds: the database's clock is looked at again by then.
LONGEST_SLEEP = 60.0


class Scheduler:
    """Any number of schedulers may run: the record of a slot is inserted in the transaction of
    its job, and whoever finds it there already enqueues nothing."""

    kind = "scheduler"

    def __init__(self, runtime: Runtime, settings: Configuration.Scheduler) -> None:
        self.runtime, self.settings = runtime, settings
        self.clock = DatabaseClock()
        self._next: dict[str, datetime] = {}
        self._stored = False

    def run(self) -> None:
        """Schedule until asked to stop."""
        keys = [definition.key for definition in registered()]
        membership = self.runtime.join(self.kind, {"keys": keys})
        if membership is None:
            return
        while not self.runtime.stopping:
            try:
                if not membership.beat_if_due():
                    logger.warning("%s was declared dead; it ends", self.runtime.name)
                    break
                pause = min(self._round(), membership.until_beat)
            except Unavailable as unavailable:
                pause = unavailable.pause
            self.runtime.sleep(pause)
        self.runtime.marks.leave_cleanly()
        self.runtime.leave(membership)

    def _round(self) -> float:
        """Enqueue what is due; return the seconds until something will be."""
        database = self.runtime.database
        present = database.run(lambda connection, dialect: dialect.current_time(connection))
        self.clock.set(present)
        if not self._stored:
            database.run(self._store_definitions)
            self._stored = True
        for definition in registered():
            # The next slot follows from the last one, never from the clock: a timer that fires
            # a little early must not find the same slot again.
            due = self._next.setdefault(definition.key, definition.schedule.next_after(present))
            if due <= present:
                self._enqueue(definition, due)
                self._next[definition.key] = self._following(definition, due, present)
        nearest = min(self._next.values(), default=None)
        if nearest is None:
            return LONGEST_SLEEP
        return max(0.0, min(LONGEST_SLEEP, (nearest - self.clock.now()).total_seconds()))

    def _following(self, definition: Definition, due: datetime, present: datetime) -> datetime:
        following = definition.schedule.next_after(due)
        if following <= present:
            logger.warning(
                "Recurring task %r missed slots from %s on: the scheduler was not running",
                definition.key,
                following,
            )
            following = definition.schedule.next_after(present)
        return following

    def _enqueue(self, definition: Definition, due: datetime) -> None:
        def operation(connection: BaseDatabaseWrapper, dialect: Dialect) -> str | None:
            using = connection.alias
            slot = RecurringExecution(
                task_key=definition.key,
                run_at=portable.storable(due),
                created_at=portable.storable(dialect.current_time(connection)),
            )
            with dialect.transaction(connection):
                if not dialect.insert_if_absent(connection, slot, ["task_key", "run_at"]):
                    return None
                result = definition.configured_task().enqueue(*definition.args, **definition.kwargs)
                if result.id.isdigit():
                    executions = RecurringExecution.objects.using(using)
                    executions.filter(task_key=definition.key, run_at=slot.run_at).update(
                        job_id=int(result.id)
                    )
                return str(result.id)

        try:
            job_id = self.runtime.database.run(operation)
        except Unavailable:
            raise
        except Exception:
            # One task that cannot be enqueued must not keep the others from their slots.
            logger.exception("Recurring task %r could not be enqueued", definition.key)
            return
        if job_id is not None:
            logger.info("Recurring task %r for %s is job %s", definition.key, due, job_id)

    def _store_definitions(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
        """Mirror the schedules of the code in the database, for people to see."""
        present = portable.storable(dialect.current_time(connection))
        rows = [_row(definition, present) for definition in registered()]
        with dialect.transaction(connection):
            stored = RecurringTask.objects.using(connection.alias).filter(static=True)
            stored.exclude(key__in=[row.key for row in rows]).delete()
            dialect.upsert(
                connection,
                rows,
                ["key"],
                [
                    field.attname
                    for field in RecurringTask._meta.concrete_fields
                    if field.attname not in ("key", "created_at")
                ],
            )


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
