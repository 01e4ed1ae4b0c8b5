"""One slot of a schedule: enqueued once, unless its task is disabled or has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ...dialects import Dialect, portable
from ...models import RecurringExecution, RecurringTask
from .task_list import FIELDS, Entry

#: Records of slots that are younger than this are never cleared.
CLEARED = timedelta(hours=12)


class SlotResult(Enum):
    """What became of a slot."""

    ENQUEUED = "enqueued"
    #: Another scheduler has it.
    TAKEN = "taken"
    #: Its task is disabled, or was when it was due.
    DISABLED = "disabled"
    #: Its task was changed or removed since the last look.
    CHANGED = "changed"
    #: Somebody holds the row of its task: another scheduler, or who changes it.
    BUSY = "busy"


@dataclass(frozen=True)
class Slot:
    """An instant at which a recurring task is due, and the arguments of that run."""

    entry: Entry
    due: datetime
    call: tuple[Sequence[object], Mapping[str, object]]

    def enqueue(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> tuple[SlotResult, str]:
        """Enqueue the job of this slot; return its id, which is empty if there is none."""
        definition = self.entry.definition
        present = dialect.current_time(connection)
        slot = RecurringExecution(
            task_key=definition.key,
            run_at=portable.storable(self.due),
            created_at=portable.storable(present),
        )
        with dialect.transaction(connection):
            objection = self._objection(connection, dialect, present)
            if objection is not None:
                return objection, ""
            if not dialect.insert_if_absent(connection, slot, ["task_key", "run_at"]):
                return SlotResult.TAKEN, ""
            task = definition.configured_task()
            # Not after the commit: a process that is killed in between would lose the run.
            result = task.get_backend().enqueue_now(task, *self.call)
            executions = RecurringExecution.objects.using(connection.alias)
            executions.filter(task_key=definition.key, run_at=slot.run_at).update(
                job_id=int(result.id) if result.id else None
            )
            return SlotResult.ENQUEUED, str(result.id)

    def _objection(
        self, connection: BaseDatabaseWrapper, dialect: Dialect, present: datetime
    ) -> SlotResult | None:
        """Return why the slot is not to be enqueued, by the row as it is now.

        The row stays locked until the slot is committed: who disables the task waits for that.
        Nobody is waited for here, since other tasks have their slots, too.
        """
        rows = RecurringTask.objects.using(connection.alias).filter(pk=self.entry.definition.key)
        row = _state(dialect.lock_rows(connection, rows, wait=False))
        if row is None:
            if rows.exists():
                return SlotResult.BUSY
            # The code counts, whether it is mirrored or not.
            return self._past(connection, present) if self.entry.row is None else SlotResult.CHANGED
        static, enabled, active_since, *stored = row
        if self.entry.row is not None and (static or tuple(stored) != self.entry.row):
            return SlotResult.CHANGED
        if not enabled or (active_since is not None and self.due <= portable.aware(active_since)):
            return SlotResult.DISABLED
        return self._past(connection, present)

    def _past(self, connection: BaseDatabaseWrapper, present: datetime) -> SlotResult | None:
        """Return that the slot is taken if it is so old that its record may have been cleared,
        and a later one is there: then a scheduler that was stopped for long has come back."""
        if present - self.due < CLEARED:
            return None
        slots = RecurringExecution.objects.using(connection.alias)
        later = slots.filter(
            task_key=self.entry.definition.key, run_at__gt=portable.storable(self.due)
        )
        return SlotResult.TAKEN if later.exists() else None


def _state(rows: QuerySet[RecurringTask]) -> Any:
    try:
        return next(iter(rows.values_list("static", "enabled", "active_since", *FIELDS)), None)
    except (ValueError, TypeError, AttributeError):  # On SQLite an instant may be any text.
        found = next(iter(rows.values_list("static", "enabled", *FIELDS)), None)
        return found and (*found[:2], None, *found[2:])
