"""One run of a recurring task: enqueued once, unless the task is disabled or has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ...dialects import Dialect, portable
from ...errors import DuplicateTask
from ...models import RecurringExecution, RecurringTask
from .recurring_schedule import FIELDS, Entry

#: Minimum age of a run's record before it may be cleared.
MIN_RECORD_AGE = timedelta(hours=12)


class EnqueueResult(Enum):
    """Result of the attempt to enqueue a run."""

    ENQUEUED = "enqueued"
    #: Another scheduler has enqueued the run.
    TAKEN = "taken"
    #: The task is disabled, or was at the time of the run.
    DISABLED = "disabled"
    #: The task was changed or removed since the last reload.
    CHANGED = "changed"
    #: The task's row is locked by another scheduler or by a change of the task.
    BUSY = "busy"


@dataclass(frozen=True)
class RecurringRun:
    """A slot of a recurring task's schedule, with the arguments of that run."""

    entry: Entry
    due: datetime
    call: tuple[Sequence[object], Mapping[str, object]]

    def enqueue(
        self, connection: BaseDatabaseWrapper, dialect: Dialect
    ) -> tuple[EnqueueResult, str]:
        """Enqueue the job of this run; also return its id, or an empty string if there is none."""
        definition = self.entry.definition
        # Not the time at which the round began: the process may have been suspended since.
        present = dialect.current_time(connection)
        record = RecurringExecution(
            task_key=definition.key,
            run_at=portable.storable(self.due),
            created_at=portable.storable(present),
        )
        with dialect.transaction(connection):
            objection = self._objection(connection, dialect, present)
            if objection is not None:
                return objection, ""
            if not dialect.insert_if_absent(connection, record, ["task_key", "run_at"]):
                return EnqueueResult.TAKEN, ""
            # Not after the commit: if the process were killed in between, the run would be lost.
            result = self._enqueue_now()
            executions = RecurringExecution.objects.using(connection.alias)
            executions.filter(task_key=definition.key, run_at=record.run_at).update(
                job_id=int(result.id) if result.id else None
            )
            return EnqueueResult.ENQUEUED, str(result.id)

    def _enqueue_now(self) -> Any:
        """Enqueue the job, and return its result, or that of the job which has its unique key."""
        task = self.entry.definition.configured_task()
        try:
            return task.get_backend().enqueue_now(task, *self.call)
        except DuplicateTask as duplicate:  # There is nobody to raise it to.
            return duplicate.result

    def _objection(
        self, connection: BaseDatabaseWrapper, dialect: Dialect, present: datetime
    ) -> EnqueueResult | None:
        """Return the reason not to enqueue the run, according to the current row of the task.

        The row stays locked until the run is committed, so that disabling the task waits for it.
        A row that is locked by another process is skipped, since other tasks are due as well.
        """
        rows = RecurringTask.objects.using(connection.alias).filter(pk=self.entry.definition.key)
        row = _state(dialect.lock_rows(connection, rows, wait=False))
        if row is None:
            if rows.exists():
                return EnqueueResult.BUSY
            # A task in code runs even if it is not mirrored.
            return (
                self._past(connection, present) if self.entry.row is None else EnqueueResult.CHANGED
            )
        static, enabled, active_since, *stored = row
        if self.entry.row is not None and (static or tuple(stored) != self.entry.row):
            return EnqueueResult.CHANGED
        if not enabled or (active_since is not None and self.due <= portable.aware(active_since)):
            return EnqueueResult.DISABLED
        return self._past(connection, present)

    def _past(self, connection: BaseDatabaseWrapper, present: datetime) -> EnqueueResult | None:
        """Return ``TAKEN`` if the run is so old that its record may have been cleared and there is
        the record of a later run: this scheduler was suspended for a long time."""
        if present - self.due < MIN_RECORD_AGE:
            return None
        records = RecurringExecution.objects.using(connection.alias)
        later = records.filter(
            task_key=self.entry.definition.key, run_at__gt=portable.storable(self.due)
        )
        return EnqueueResult.TAKEN if later.exists() else None


def _state(rows: QuerySet[RecurringTask]) -> Any:
    try:
        return next(iter(rows.values_list("static", "enabled", "active_since", *FIELDS)), None)
    except (ValueError, TypeError, AttributeError):  # SQLite stores any text as a datetime.
        found = next(iter(rows.values_list("static", "enabled", *FIELDS)), None)
        return found and (*found[:2], None, *found[2:])
