"""When each recurring task is due next."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max

from ...dialects import portable
from ...logging import about, get_logger
from ...models import RecurringExecution, RecurringTask
from ...schedules.catch_up import following
from ...schedules.cron import Schedule
from ...schedules.definition import RecurringDefinition
from ...schedules.interval import Interval
from ...signals import Recurring, recurring_enqueued, recurring_missed, send
from ..base.connections import tidy_connections
from ..base.database import QueueDatabase, Unavailable
from .slot import Slot, SlotResult
from .task_list import Entry, RecurringSchedule

logger = get_logger("steady_queue.scheduler")

#: Time for a slot to be stored by the scheduler that is about to.
JUST_NOW = timedelta(seconds=1)
#: Time for somebody else to be done with the row of a task.
BUSY_PAUSE = timedelta(seconds=0.2)


class Timetable:
    """The next slot of each task of a recurring schedule."""

    def __init__(self, database: QueueDatabase, schedule: RecurringSchedule) -> None:
        self.database, self.schedule = database, schedule
        self._next: dict[str, tuple[Schedule | Interval, datetime]] = {}
        self._looked: datetime | None = None
        #: Whether a task was found to have changed since the last look.
        self.outdated = False

    def look(self, present: datetime) -> None:
        """Take over the tasks as they are now; raise ``Unavailable``."""
        self.database.run(self.schedule.look)
        for key, entry in list(self.schedule.entries.items()):
            schedule = entry.definition.schedule
            if key not in self._next or self._next[key][0] != schedule:
                self._next[key] = schedule, self._first(entry.definition, present)
        for key in self._next.keys() - self.schedule.entries.keys():
            del self._next[key]
        self._looked, self.outdated = present, False

    def enqueue_due(self, present: datetime) -> datetime | None:
        """Enqueue a slot of each task that is due; return the instant of the next one, or None.
        Raises ``Unavailable``."""
        nearest = []
        for key, (schedule, due) in self._next.items():
            # The next slot follows from the last one, never from the clock: a timer that fires
            # a little early must not find the same slot again.
            if due <= present:
                fate = self._enqueue(self.schedule.entries[key], due)
                if fate is SlotResult.CHANGED:
                    self.outdated = True
                    continue
                if fate is SlotResult.BUSY:
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
            # What was not there at the last look, or with another schedule, has missed nothing
            # before.
            known = [instant for instant in (last, since, self._looked) if instant is not None]
            if known:
                # A slot of just now may be in the hands of another scheduler.
                grace = JUST_NOW + (present - self._looked if self._looked else timedelta(0))
                return self._following(
                    definition, max(known), present, grace if last else timedelta.max
                )
        except (ValueError, TypeError, AttributeError, OverflowError):
            logger.exception(
                "What recurring task %r has missed is not known",
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
            away = self.database.was_away((present - missed).total_seconds())
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

    def _enqueue(self, entry: Entry, due: datetime) -> SlotResult | None:
        key = entry.definition.key
        try:
            slot = Slot(entry, due, self._call(entry.definition))
            fate, job_id = self.database.run(slot.enqueue)
        except Unavailable:
            raise
        except Exception:
            # One task that cannot be enqueued must not keep the others from their slots.
            logger.exception(
                "Recurring task %r could not be enqueued",
                key,
                extra=about("recurring.failed", recurring_key=key),
            )
            return None
        self._tell(key, due, fate, job_id)
        return fate

    def _tell(self, key: str, due: datetime, fate: SlotResult, job_id: str) -> None:
        slot_at = due.isoformat()
        if fate is SlotResult.DISABLED:
            logger.debug(
                "Recurring task %r for %s is disabled",
                key,
                due,
                extra=about("recurring.disabled", recurring_key=key, run_at=slot_at),
            )
        elif fate is SlotResult.ENQUEUED and not job_id:
            logger.info(
                "Recurring task %r for %s is discarded: its limit is reached",
                key,
                due,
                extra=about("recurring.discarded", recurring_key=key, run_at=slot_at),
            )
        elif fate is SlotResult.ENQUEUED:
            logger.info(
                "Recurring task %r for %s is job %s",
                key,
                due,
                job_id,
                extra=about(
                    "recurring.enqueued", recurring_key=key, run_at=slot_at, task_id=job_id
                ),
            )
            send(
                recurring_enqueued,
                Recurring,
                key=key,
                run_at=due,
                task_id=job_id,
                using=self.database.using,
            )

    def _call(self, definition: RecurringDefinition) -> Any:
        """Return the arguments of a run, with model instances from whichever database."""
        try:
            return definition.call()
        except (DatabaseError, InterfaceError):
            # Is it the queue's own? Then the slot is tried again.
            self.database.run(lambda connection, dialect: dialect.current_time(connection))
            raise
        finally:
            if definition.stored_call is not None:
                tidy_connections()


def _known_slots(
    connection: BaseDatabaseWrapper, key: str
) -> tuple[datetime | None, datetime | None]:
    """Return the last slot that was enqueued, and the instant up to which no other is missed."""
    using = connection.alias
    slots = RecurringExecution.objects.using(using).filter(task_key=key)
    rows = RecurringTask.objects.using(using).filter(pk=key)
    last: datetime | None = slots.aggregate(last=Max("run_at"))["last"]
    since = rows.values_list("active_since", flat=True).first()
    return last and portable.aware(last), since and portable.aware(since)
