"""Next due time of each recurring task."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max

from ...dialects import portable
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...models import RecurringExecution, RecurringTask
from ...schedules.catch_up import following
from ...schedules.cron import Schedule
from ...schedules.definition import RecurringDefinition
from ...schedules.interval import Interval
from ...signals import Recurring, recurring_enqueued, recurring_missed, send
from ..base.connections import tidy_connections
from ..base.database import QueueDatabase, Unavailable
from .recurring_run import EnqueueResult, RecurringRun
from .recurring_schedule import Entry, RecurringSchedule

logger = get_logger("steady_queue.scheduler")

#: Time for another scheduler to store a slot that has just become due.
JUST_NOW = timedelta(seconds=1)
#: Pause before a slot is tried again whose task's row is locked.
BUSY_PAUSE = timedelta(seconds=0.2)


class DueTimes:
    """Tracks the next slot of each task of a recurring schedule, and enqueues those that are
    due."""

    def __init__(self, database: QueueDatabase, schedule: RecurringSchedule) -> None:
        self.database, self.schedule = database, schedule
        self._next: dict[str, tuple[Schedule | Interval, datetime]] = {}
        self._refreshed: datetime | None = None
        #: Whether a task has changed since the last refresh.
        self.outdated = False

    def refresh(self, present: datetime) -> None:
        """Reload the schedule and compute the due times of new tasks. Raises ``Unavailable``."""
        self.database.run(self.schedule.reload)
        for key, entry in list(self.schedule.entries.items()):
            schedule = entry.definition.schedule
            if key not in self._next or self._next[key][0] != schedule:
                self._next[key] = schedule, self._first(entry.definition, present)
        for key in self._next.keys() - self.schedule.entries.keys():
            del self._next[key]
        self._refreshed, self.outdated = present, False

    def enqueue_due(self, present: datetime) -> datetime | None:
        """Enqueue one slot of each task that is due, and return the next due time, if any.

        Raises ``Unavailable``.
        """
        nearest = []
        for key, (schedule, due) in self._next.items():
            # The next slot follows from the last one, never from the clock: a timer that fires
            # slightly early must not yield the same slot again.
            if due <= present:
                result = self._enqueue(self.schedule.entries[key], due)
                if result is EnqueueResult.CHANGED:
                    self.outdated = True
                    continue
                if result is EnqueueResult.BUSY:
                    nearest.append(present + BUSY_PAUSE)
                    continue
                due = self._following(self.schedule.entries[key].definition, due, present)
                self._next[key] = schedule, due
            nearest.append(due)
        return min(nearest, default=None)

    def _first(self, definition: RecurringDefinition, present: datetime) -> datetime:
        try:
            last, since = self.database.run(
                lambda connection, _: _known_slots(connection, definition.key)
            )
            # A task that was added or rescheduled since the last refresh has missed nothing before
            # that refresh.
            known = [instant for instant in (last, since, self._refreshed) if instant is not None]
            if known:
                # Another scheduler may be about to store a slot that has just become due.
                grace = JUST_NOW + (present - self._refreshed if self._refreshed else timedelta(0))
                return self._following(
                    definition, max(known), present, grace if last else timedelta.max
                )
        except (ValueError, TypeError, AttributeError, OverflowError):
            log_internal_error(
                logger,
                "The missed slots of recurring task %r are unknown",
                definition.key,
                extra=about("recurring.history_unknown", recurring_key=definition.key),
            )
        return definition.schedule.next_after(present)

    def _following(
        self,
        definition: RecurringDefinition,
        last: datetime,
        present: datetime,
        grace: timedelta = timedelta(0),
    ) -> datetime:
        next_after = definition.schedule.next_after
        missed, slot = next_after(last), following(next_after, definition.catch_up, last, present)
        if missed < slot and present - missed >= grace:
            away = self.database.was_unavailable((present - missed).total_seconds())
            logger.warning(
                "Recurring task %r missed slots from %s on: %s",
                definition.key,
                missed,
                "the database was away" if away else "the scheduler was not running",
                extra=about("recurring.missed", recurring_key=definition.key),
            )
            send(
                recurring_missed,
                Recurring,
                key=definition.key,
                since=missed,
                using=self.database.using,
            )
        return slot

    def _enqueue(self, entry: Entry, due: datetime) -> EnqueueResult | None:
        key = entry.definition.key
        try:
            run = RecurringRun(entry, due, self._call(entry.definition))
            result, job_id = self.database.run(run.enqueue)
        except Unavailable:
            raise
        except Exception:
            # A task that cannot be enqueued must not hold up the others.
            log_internal_error(
                logger,
                "Recurring task %r could not be enqueued",
                key,
                extra=about("recurring.failed", recurring_key=key),
            )
            return None
        self._log_result(key, due, result, job_id)
        if result is EnqueueResult.ENQUEUED and job_id:
            send(
                recurring_enqueued,
                Recurring,
                key=key,
                run_at=due,
                task_id=job_id,
                using=self.database.using,
            )
        return result

    def _log_result(self, key: str, due: datetime, result: EnqueueResult, job_id: str) -> None:
        slot_at = due.isoformat()
        if result is EnqueueResult.DISABLED:
            logger.debug(
                "Recurring task %r for %s is disabled",
                key,
                due,
                extra=about("recurring.disabled", recurring_key=key, run_at=slot_at),
            )
        elif result is EnqueueResult.ENQUEUED and not job_id:
            logger.info(
                "Recurring task %r for %s is discarded: its limit is reached",
                key,
                due,
                extra=about("recurring.discarded", recurring_key=key, run_at=slot_at),
            )
        elif result is EnqueueResult.ENQUEUED:
            logger.info(
                "Recurring task %r for %s is job %s",
                key,
                due,
                job_id,
                extra=about(
                    "recurring.enqueued", recurring_key=key, run_at=slot_at, task_id=job_id
                ),
            )

    def _call(self, definition: RecurringDefinition) -> Any:
        """Return the arguments of a run. Model instances may come from any database."""
        try:
            return definition.call()
        except (DatabaseError, InterfaceError):
            # If the queue's own database is down, this raises Unavailable and the slot is retried.
            self.database.run(lambda connection, dialect: dialect.current_time(connection))
            raise
        finally:
            if definition.stored_call is not None:
                tidy_connections()


def _known_slots(
    connection: BaseDatabaseWrapper, key: str
) -> tuple[datetime | None, datetime | None]:
    """Return the last enqueued slot, and the time before which no slot counts as missed."""
    using = connection.alias
    slots = RecurringExecution.objects.using(using).filter(task_key=key)
    rows = RecurringTask.objects.using(using).filter(pk=key)
    last: datetime | None = slots.aggregate(last=Max("run_at"))["last"]
    since = rows.values_list("active_since", flat=True).first()
    return last and portable.aware(last), since and portable.aware(since)
