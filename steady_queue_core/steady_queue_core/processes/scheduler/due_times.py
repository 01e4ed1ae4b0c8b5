"""Next due time of each recurring task."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import portable
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...models import RecurringExecution, RecurringTask
from ...project_code import contained
from ...schedules.values import RecurringDefinition
from ..base.connections import tidy_connections
from ..base.database import QueueDatabase, Unavailable
from .next_slot import NextSlot
from .recurring_run import Attempt, EnqueueResult, RecurringRun
from .recurring_schedule import Entry, RecurringSchedule
from .run_log import announce, announce_missed, log_finished

logger = get_logger("steady_queue.scheduler")

#: Time for another scheduler to store a slot that has just become due.
JUST_NOW = timedelta(seconds=1)
#: Pause before a slot is tried again whose task's row is locked.
BUSY_PAUSE = timedelta(seconds=0.2)
#: Pause before a slot is tried again that alone seems to have lost the database.
ALONE_PAUSE = timedelta(seconds=1)
#: Pause before the question again whether the run has ended that a slot waits for.
WAITING_PAUSE = timedelta(seconds=1)
#: How far the database's clock is set back before due times are computed anew. By less, they are
#: only as much late.
CLOCK_STEP = timedelta(seconds=10)


class DueTimes:
    """Tracks the next slot of each task of a recurring schedule, and enqueues those that are
    due."""

    def __init__(self, database: QueueDatabase, schedule: RecurringSchedule) -> None:
        self.database, self.schedule = database, schedule
        self._slots: dict[str, NextSlot] = {}
        self._refreshed: datetime | None = None
        #: The latest time of the database's clock, and whether it was set back since the last
        #: refresh.
        self._latest: datetime | None = None
        self._was_set_back = False
        #: Whether a task or the clock has changed since the last refresh.
        self.outdated = False

    def refresh(self, present: datetime) -> None:
        """Reload the schedule and compute the due times of new tasks. Raises ``Unavailable``."""
        self._heed_clock(present)
        self.database.run(self.schedule.reload)
        for key, entry in list(self.schedule.entries.items()):
            slot = self._slots.setdefault(key, NextSlot())
            if self._is_new(slot, entry.definition):
                self._go_on(entry.definition, self._first(entry.definition, present))
        for key in self._slots.keys() - self.schedule.entries.keys():
            del self._slots[key]
        self._refreshed, self._was_set_back, self.outdated = present, False, False

    def enqueue_due(self, present: datetime) -> datetime | None:
        """Enqueue one slot of each task that is due, and return the next due time, if any.

        Raises ``Unavailable``.
        """
        self._heed_clock(present)
        nearest = []
        for key, slot in list(self._slots.items()):
            due = slot.due
            if slot.at is not None and due is not None and due <= present:
                try:
                    due = self._enqueue_slot(self.schedule.entries[key], slot.at, present)
                except Unavailable as unavailable:
                    # What middleware raises may look like it: that must not hold up the others.
                    if unavailable.refused:
                        self.database.require_writes()
                    else:
                        self._require_database()
                    due = present + ALONE_PAUSE
            if due is not None:
                nearest.append(due)
        return min(nearest, default=None)

    def _require_database(self) -> None:
        """Raise ``Unavailable`` if the database does not answer."""
        self.database.run(lambda connection, dialect: dialect.current_time(connection))

    def _heed_clock(self, present: datetime) -> None:
        """Forget all due times if the clock was set back: they would be too far in the future."""
        latest, self._latest = self._latest, max(present, self._latest or present)
        if latest is None or latest - present < CLOCK_STEP:
            return
        logger.warning(
            "The clock of the database was set back from %s to %s: due times are computed anew",
            latest,
            present,
            extra=about("recurring.clock_set_back"),
        )
        self._slots = {
            key: NextSlot(is_waiting=slot.is_waiting) for key, slot in self._slots.items()
        }
        self._latest, self._refreshed = present, None
        self._was_set_back = self.outdated = True

    def _enqueue_slot(self, entry: Entry, due: datetime, present: datetime) -> datetime | None:
        """Enqueue a slot that is due; return when there is something to do for the task next."""
        definition = entry.definition
        known = self._slots[definition.key]
        result, slot, _ = self._enqueue(entry, due)
        if result is EnqueueResult.CHANGED:
            self.outdated = True
            return None
        if result is EnqueueResult.BUSY:
            return present + BUSY_PAUSE
        if result is EnqueueResult.WAITING:
            known.span, known.at = definition.span, slot
            return present + WAITING_PAUSE
        if result is EnqueueResult.FINISHED:
            known.is_complete = True
            return self._go_on(definition, None)
        if result is EnqueueResult.FAILED and self._is_made_up_for(definition, slot, present):
            again = known.pause(present)
            if again is not None:
                return again
        if slot < due:
            # That was one which had waited; this one is still due.
            return present
        # The next slot follows from the last one, never from the clock: a timer that fires slightly
        # early must not yield the same slot again.
        following = self._following(definition, slot, present)
        known.is_waiting = False
        return self._go_on(definition, following)

    def _is_made_up_for(
        self, definition: RecurringDefinition, slot: datetime, present: datetime
    ) -> bool:
        """Whether a slot is late rather than lost: the task's policy says so, and does not make up
        for another one instead."""
        if definition.catch_up != "last":
            return definition.catch_up != "skip"
        following = definition.following(slot, present)
        return following is None or following > present

    def _is_new(self, slot: NextSlot, definition: RecurringDefinition) -> bool:
        """Whether the next slot is to be found anew: of a task that was added or rescheduled, or is
        to run again although it had run as often as it should."""
        if slot.span != definition.span:
            return True
        return slot.is_complete and self.schedule.has_runs_left(definition.key)

    def _go_on(self, definition: RecurringDefinition, due: datetime | None) -> datetime | None:
        self._slots[definition.key].become(definition.span, due)
        if due is None:
            log_finished(definition.key)
        return due

    def _first(self, definition: RecurringDefinition, present: datetime) -> datetime | None:
        try:
            last, since, waiting = self.database.run(
                lambda connection, _: _known_slots(connection, definition, present)
            )
            slot = self._slots[definition.key]
            told = since if since != slot.since else None
            slot.since = since
            if waiting is not None and waiting == last:
                return waiting
            # A task that was added or rescheduled counts from when its row says: it may have been
            # committed after the last refresh. Any other has missed nothing before that refresh.
            seen = self._refreshed if told is None else None
            known = [instant for instant in (last, since, seen) if instant is not None]
            if known:
                is_added = told is not None and self._refreshed is not None
                has_run = last is not None and (not is_added or max(known) == last)
                # Another scheduler may be about to store a slot that has just become due.
                grace = JUST_NOW + (present - self._refreshed if self._refreshed else timedelta(0))
                return self._following(
                    definition, max(known), present, grace if has_run else timedelta.max
                )
        except (ValueError, TypeError, AttributeError, OverflowError):
            log_internal_error(
                logger,
                "The missed slots of recurring task %r are unknown",
                definition.key,
                extra=about("recurring.history_unknown", recurring_key=definition.key),
            )
        return definition.span.next_after(present)

    def _following(
        self,
        definition: RecurringDefinition,
        last: datetime,
        present: datetime,
        grace: timedelta = timedelta(0),
    ) -> datetime | None:
        missed = definition.span.next_after(last)
        slot = definition.following(last, present)
        # The last one of a schedule that has ended may be missed without another to follow.
        if missed is not None and missed != slot and present - missed >= grace:
            reason = self._reason(definition.key, present - missed)
            announce_missed(definition.key, missed, reason, self.database.using)
        return slot

    def _reason(self, key: str, late: timedelta) -> str:
        if self._was_set_back:
            return "the clock of the database was ahead"
        if self._slots[key].is_waiting:
            return "its previous run had not ended"
        if self.database.was_unavailable(late.total_seconds()):
            return "the database was away"
        return "the scheduler was not running"

    def _enqueue(self, entry: Entry, due: datetime) -> Attempt:
        key = entry.definition.key
        try:
            attempt = contained(self._run, entry, due)
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
            return Attempt(EnqueueResult.FAILED, due)
        self._tell(key, attempt)
        return attempt

    def _run(self, entry: Entry, due: datetime) -> Attempt:
        run = RecurringRun(entry, due, self._call(entry.definition))
        return self.database.run(run.enqueue, optional=True)

    def _tell(self, key: str, attempt: Attempt) -> None:
        slot, waits = self._slots[key], attempt.result is EnqueueResult.WAITING
        if not (waits and slot.is_waiting):  # It is asked for each second.
            announce(key, attempt, self.database.using)
        slot.is_waiting = slot.is_waiting or waits

    def _call(self, definition: RecurringDefinition) -> Any:
        """Return the arguments of a run. Model instances may come from any database."""
        try:
            return definition.call()
        except (DatabaseError, InterfaceError):
            # If the queue's own database is down, this raises Unavailable and the slot is retried.
            self._require_database()
            raise
        finally:
            if definition.stored_call is not None:
                tidy_connections()


def _known_slots(
    connection: BaseDatabaseWrapper, definition: RecurringDefinition, present: datetime
) -> tuple[datetime | None, datetime | None, datetime | None]:
    """Return the last enqueued slot that has passed, the time before which no slot counts as
    missed, and the slot that waits for the end of the previous run."""
    using = connection.alias
    # There are later ones if the clock of the database was ahead.
    passed = portable.storable(present + JUST_NOW)
    slots = RecurringExecution.objects.using(using).filter(
        task_key=definition.key, run_at__lte=passed
    )
    rows = RecurringTask.objects.using(using).filter(pk=definition.key)
    last = slots.order_by("-run_at").values_list("run_at", flat=True).first()
    columns = ["active_since", "waiting_at"][: 2 if definition.overlap == "queue" else 1]
    row = rows.values(*columns).first() or {}
    since, waiting = row.get("active_since"), row.get("waiting_at")
    return (
        last and portable.aware(last),
        since and portable.aware(since),
        waiting and portable.aware(waiting),
    )
