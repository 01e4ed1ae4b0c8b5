"""Scheduler: enqueues recurring tasks when they are due, each slot once."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max

from ..catch_up import following
from ..dialects import Dialect, portable
from ..logging import about
from ..models import RecurringExecution
from ..recurring_task import RecurringTask as Definition
from ..signals import Recurring, recurring_enqueued, recurring_missed, tell
from .clock import DatabaseClock
from .database import Unavailable
from .runtime import Runtime
from .schedules import registered_on

logger = logging.getLogger("steady_queue.scheduler")

#: Longest sleep, in seconds: the database's clock is looked at again by then.
LONGEST_SLEEP = 60.0
#: Time for a slot to be stored by the scheduler that is about to.
JUST_NOW = timedelta(seconds=1)


class Scheduler:
    """Any number of schedulers may run: the record of a slot is inserted in the transaction of
    its job, and whoever finds it there already enqueues nothing."""

    kind = "scheduler"

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.definitions = {each.key: each for each in registered_on(runtime.using)}
        self.clock = DatabaseClock()
        self._next: dict[str, datetime] = {}

    def run(self) -> None:
        """Schedule until asked to stop."""
        self.runtime.attend({"keys": sorted(self.definitions)}, self._round)

    def _round(self) -> float:
        """Enqueue what is due; return the seconds until something will be."""
        database = self.runtime.database
        present = database.run(lambda connection, dialect: dialect.current_time(connection))
        self.clock.set(present)
        if not self._next:
            self._next = {
                key: self._first(definition, present)
                for key, definition in self.definitions.items()
            }
        for key, definition in self.definitions.items():
            # The next slot follows from the last one, never from the clock: a timer that fires
            # a little early must not find the same slot again.
            due = self._next[key]
            if due <= present:
                self._enqueue(definition, due)
                self._next[key] = self._following(definition, due, present)
        nearest = min(self._next.values())
        return max(0.0, min(LONGEST_SLEEP, (nearest - self.clock.now()).total_seconds()))

    def _first(self, definition: Definition, present: datetime) -> datetime:
        try:
            last = self.runtime.database.run(
                lambda connection, _: (
                    RecurringExecution.objects.using(connection.alias)
                    .filter(task_key=definition.key)
                    .aggregate(last=Max("run_at"))["last"]
                )
            )
            if last is not None:
                # A slot of just now may be in the hands of another scheduler.
                return self._following(definition, portable.aware(last), present, JUST_NOW)
        except (ValueError, TypeError, AttributeError):
            logger.exception(
                "What recurring task %r has missed is not known",
                definition.key,
                extra=about("recurring.history_unknown", recurring_key=definition.key),
            )
        return definition.schedule.next_after(present)

    def _following(
        self,
        definition: Definition,
        last: datetime,
        present: datetime,
        grace: timedelta = timedelta(0),
    ) -> datetime:
        next_after = definition.schedule.next_after
        missed, slot = next_after(last), following(next_after, definition.catch_up, last, present)
        if missed < slot and missed <= present - grace:
            logger.warning(
                "Recurring task %r missed slots from %s on: the scheduler was not running",
                definition.key,
                missed,
                extra=about("recurring.missed", recurring_key=definition.key),
            )
            tell(
                recurring_missed,
                Recurring,
                key=definition.key,
                since=missed,
                using=self.runtime.using,
            )
        return slot

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
                task = definition.configured_task()
                # Not after the commit: a process that is killed in between would lose the run.
                result = task.get_backend().enqueue_now(task, definition.args, definition.kwargs)
                executions = RecurringExecution.objects.using(using)
                executions.filter(task_key=definition.key, run_at=slot.run_at).update(
                    job_id=int(result.id) if result.id else None
                )
                return str(result.id)

        try:
            job_id = self.runtime.database.run(operation)
        except Unavailable:
            raise
        except Exception:
            # One task that cannot be enqueued must not keep the others from their slots.
            logger.exception(
                "Recurring task %r could not be enqueued",
                definition.key,
                extra=about("recurring.failed", recurring_key=definition.key),
            )
            return
        if job_id is not None:
            logger.info(
                "Recurring task %r for %s is job %s",
                definition.key,
                due,
                job_id,
                extra=about(
                    "recurring.enqueued",
                    recurring_key=definition.key,
                    task_id=job_id,
                    run_at=due.isoformat(),
                ),
            )
            tell(
                recurring_enqueued,
                Recurring,
                key=definition.key,
                run_at=due,
                task_id=job_id,
                using=self.runtime.using,
            )
