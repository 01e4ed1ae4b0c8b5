"""One run of a recurring task: enqueued once, unless the task is disabled or has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from ...backend_results import is_duplicate
from ...dialects import Dialect, portable
from ...errors import DuplicateTask
from ...models import RecurringExecution, RecurringTask
from ...schedules.stored import row_of
from .recurring_schedule import FIELDS, UNREADABLE, Entry
from .run_track import COLUMNS, RunTrack

#: Minimum age of a run's record before it may be cleared.
MIN_RECORD_AGE = timedelta(hours=12)
#: Columns of times that are read, but do not define the task.
TIMES = ("active_since", "waiting_at")


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
    #: The task has run as often as it repeats.
    FINISHED = "finished"
    #: The run could not be enqueued: the log says why.
    FAILED = "failed"
    #: The previous run has not ended: this one is left out, or waits.
    SKIPPED = "skipped"
    WAITING = "waiting"


class Attempt(NamedTuple):
    """What came of the attempt to enqueue a run."""

    result: EnqueueResult
    #: The slot that was enqueued or waits: perhaps another one, which was waiting.
    slot: datetime
    #: The job; if the run was left out or waits, that of the previous run.
    job_id: str = ""


@dataclass(frozen=True)
class RecurringRun:
    """A slot of a recurring task's schedule, with the arguments of that run."""

    entry: Entry
    due: datetime
    call: tuple[Sequence[object], Mapping[str, object]]

    def enqueue(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> Attempt:
        """Enqueue the job of this run, or of an earlier one that waits."""
        # Not the time at which the round began: the process may have been suspended since.
        present = dialect.current_time(connection)
        with dialect.transaction(connection):
            row = self._locked_row(connection, dialect)
            objection = self._objection(connection, row, present)
            if objection is not None:
                return Attempt(objection, self.due)
            if not self.entry.definition.is_tracked:
                return self._enqueue(connection, dialect, present)
            return self._enqueue_tracked(connection, dialect, present, row)

    def _enqueue(
        self, connection: BaseDatabaseWrapper, dialect: Dialect, present: datetime
    ) -> Attempt:
        if not self._record(connection, dialect, present):
            return Attempt(EnqueueResult.TAKEN, self.due)
        return self._enqueue_job(connection, self.due)

    def _enqueue_tracked(
        self,
        connection: BaseDatabaseWrapper,
        dialect: Dialect,
        present: datetime,
        row: Mapping[str, Any] | None,
    ) -> Attempt:
        row = row or self._new_row(connection, dialect, present)
        if row is None:
            return Attempt(EnqueueResult.BUSY, self.due)
        track = RunTrack(connection.alias, self.entry.definition, row)
        if track.is_complete:
            return Attempt(EnqueueResult.FINISHED, self.due)
        slot = track.waiting or self.due
        # What waits is recorded already, for whichever scheduler comes to it first.
        if track.waiting is None and not self._record(connection, dialect, present):
            return Attempt(EnqueueResult.TAKEN, slot)
        if track.live_job is None:
            return self._enqueue_job(connection, slot, track)
        if self.entry.definition.overlap == "skip":
            track.skip()
            return Attempt(EnqueueResult.SKIPPED, slot, str(track.live_job))
        if track.waiting is None:
            track.wait(slot)
        return Attempt(EnqueueResult.WAITING, slot, str(track.live_job))

    def _record(self, connection: BaseDatabaseWrapper, dialect: Dialect, present: datetime) -> bool:
        """Insert the record of this run; return whether there was none."""
        record = RecurringExecution(
            task_key=self.entry.definition.key,
            run_at=portable.storable(self.due),
            created_at=portable.storable(present),
        )
        return dialect.insert_if_absent(connection, record, ["task_key", "run_at"])

    def _enqueue_job(
        self, connection: BaseDatabaseWrapper, slot: datetime, track: RunTrack | None = None
    ) -> Attempt:
        # Not after the commit: if the process were killed in between, the run would be lost.
        result, is_new = self._enqueue_now(slot)
        job_id = int(result.id) if result.id else None
        executions = RecurringExecution.objects.using(connection.alias)
        executions.filter(
            task_key=self.entry.definition.key, run_at=portable.storable(slot)
        ).update(job_id=job_id)
        if track is not None:
            track.count(job_id, is_new=is_new and job_id is not None)
        return Attempt(EnqueueResult.ENQUEUED, slot, str(result.id))

    def _enqueue_now(self, slot: datetime) -> tuple[Any, bool]:
        """Enqueue the job; return its result, or that of the job which has its unique key, and
        whether it is new."""
        definition = self.entry.definition
        task = definition.configured_task()
        # Nobody else could ask for it.
        intended = slot if getattr(task, "takes_context", False) else None
        try:
            result = task.get_backend().enqueue_now(
                task, *self.call, intended_time=intended, recurring_task=definition
            )
        except DuplicateTask as duplicate:  # There is nobody to raise it to.
            return duplicate.result, False
        return result, not is_duplicate(result)

    def _new_row(
        self, connection: BaseDatabaseWrapper, dialect: Dialect, present: datetime
    ) -> dict[str, Any] | None:
        """Insert the row of a task in code that is not mirrored: what is tracked needs one."""
        row = row_of(self.entry.definition, present, static=True)
        row.active_since = None
        dialect.insert_if_absent(connection, row, ["key"])
        return self._locked_row(connection, dialect)

    def _locked_row(
        self, connection: BaseDatabaseWrapper, dialect: Dialect
    ) -> dict[str, Any] | None:
        """Return what matters of the task's row, locked; ``None`` if there is none, or if it is
        locked by another process."""
        definition = self.entry.definition
        columns = ["static", "enabled", "active_since"]
        columns += COLUMNS if definition.is_tracked else ()
        columns += FIELDS if self.entry.row is not None else ()
        rows = RecurringTask.objects.using(connection.alias).filter(pk=definition.key)

        def read(*columns: str) -> dict[str, Any] | None:
            return next(
                iter(dialect.lock_rows(connection, rows, wait=False).values(*columns)), None
            )

        try:
            return read(*columns)
        except UNREADABLE:
            # A time that is none: as if it were not known.
            known = read(*(name for name in columns if name not in TIMES))
            return known and dict.fromkeys(TIMES) | known

    def _objection(
        self, connection: BaseDatabaseWrapper, row: Mapping[str, Any] | None, present: datetime
    ) -> EnqueueResult | None:
        """Return the reason not to enqueue the run, according to the current row of the task.

        The row stays locked until the run is committed, so that disabling the task waits for it.
        A row that is locked by another process is skipped, since other tasks are due as well.
        """
        entry = self.entry
        if row is None:
            rows = RecurringTask.objects.using(connection.alias)
            if rows.filter(pk=entry.definition.key).exists():
                return EnqueueResult.BUSY
            # A task in code runs even if it is not mirrored.
            return self._past(connection, present) if entry.row is None else EnqueueResult.CHANGED
        if entry.row is not None and (
            row["static"] or tuple(row[name] for name in FIELDS) != entry.row
        ):
            return EnqueueResult.CHANGED
        since = row["active_since"]
        if not row["enabled"] or (since is not None and self.due <= portable.aware(since)):
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
