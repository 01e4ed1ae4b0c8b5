"""Dependents: the jobs that wait for members of batches, as these end."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet
from django.db.models.functions import Abs

from .batches import by_value, parts
from .membership import UNMET_STATES, DependencyState, MemberState, RunWhen
from .operations import Operations
from .portable import aware, storable
from .portable.models import moved, rows_of
from .present_rows import PresentRows
from .ready import Ready

#: Jobs that wait for more members than this are not locked by each that ends.
FEW = 8


class Dependents:
    """Closes what waits for members, and moves on the jobs that wait for nothing any more."""

    def __init__(self, connection: BaseDatabaseWrapper, dialect: Operations) -> None:
        self._connection, self._dialect = connection, dialect
        self._present = PresentRows(connection, dialect)
        #: The queues of the jobs that were moved on.
        self.queue_names: dict[str, None] = {}

    def resolve(self, parents: Mapping[int, MemberState]) -> set[int]:
        """Close what waits for these members; return the jobs that do."""
        waiting = set[int]()
        for some in parts(parents):
            rows = self._dependencies.filter(parent_id__in=some, state=DependencyState.OPEN)
            columns = rows.order_by("pk").values_list("pk", "job_id", "parent_id", "run_when")
            states: dict[int, DependencyState] = {}
            for pk, job_id, parent_id, run_when in self._present.of(columns):
                states[pk] = RunWhen(run_when).after(parents[parent_id])
                waiting.add(job_id)
            write_states(self._dependencies, states)
        return waiting

    def skipped_of(self, cancelled: Collection[int]) -> set[int]:
        """Return those of these jobs, cancelled ones, that were so since they were not to run, and
        not after a failure."""
        skipped: dict[int, bool] = {}
        for some in parts(cancelled):
            unmet = self._dependencies.filter(job_id__in=some, state__in=UNMET_STATES)
            for job_id, state in self._present.of(unmet.values_list("job_id", "state")):
                skipped[job_id] = skipped.get(job_id, True) and state == DependencyState.UNMET
        return {job_id for job_id, whole in skipped.items() if whole}

    def move_on(self, job_ids: Collection[int]) -> None:
        """Move on those of these jobs that wait for nothing any more."""
        many = len(job_ids) > FEW
        for some in parts(sorted(job_ids)):
            rows = self._waiting.filter(pk__in=some).order_by("pk")
            left = [
                row.pk for row in self._present.of(rows)
                if many or row.width <= FEW or not self._present.lock_last(self._open([row.pk]))
            ]  # fmt: skip
            if left:
                self._move_on_locked(left)

    def _move_on_locked(self, job_ids: Sequence[int]) -> None:
        rows = self._waiting.filter(pk__in=job_ids).order_by("pk")
        locked = list(self._dialect.lock_rows(self._connection, rows, wait=True))
        several = [row.pk for row in locked if row.width > 1]
        # In a new statement, which sees what was committed before the locks were granted.
        held = self._held(several) if several else set()
        moving = [row for row in locked if row.pk not in held]
        if moving:
            self._cancel_unmet(moving)
            self._insert_executions(moving)
            self._waiting.filter(pk__in=[row.pk for row in moving])._raw_delete(
                self._connection.alias
            )

    def _held(self, job_ids: Sequence[int]) -> set[int]:
        """Return those of these jobs that wait for what has not ended."""
        if self._present.need_locks:
            return {pk for pk in job_ids if self._present.any_of(self._open([pk]))}
        return set(self._open(job_ids).values_list("job_id", flat=True))

    def _cancel_unmet(self, waiting: Sequence[Any]) -> None:
        """Ask those of these jobs to end that are not to run: a worker claims and ends them, and
        so on with those that wait for them, however many these are."""
        job_ids = [row.pk for row in waiting]
        unmet = self._dependencies.filter(job_id__in=job_ids, state__in=UNMET_STATES)
        skipped = set(self._present.of(unmet.values_list("job_id", flat=True)))
        if not skipped:
            return
        # A claim may read the execution as of now, and its job as of a moment before: by another
        # token it knows, and reads the job again.
        for row in waiting:
            row.token += row.pk in skipped
        jobs = rows_of(self._connection, "Job").filter(pk__in=skipped)
        jobs.update(max_attempts=-Abs("max_attempts"), token=F("token") + 1)

    def _insert_executions(self, rows: Sequence[Any]) -> None:
        present = self._dialect.current_time(self._connection)
        made: dict[str, list[Any]] = {}
        for row in rows:
            due = present + row.delay if row.delay is not None else row.due_at and aware(row.due_at)
            later = due if due is not None and due > present else None
            name, extra = "ReadyExecution", dict[str, Any]()
            if later is None and row.concurrency_key is None:
                self.queue_names[row.queue_name] = None
            else:
                # The dispatcher gives out permits: a semaphore cannot be locked so late.
                name = "ScheduledExecution"
                extra = {
                    "due_at": storable(later or present),
                    "concurrency_key": row.concurrency_key,
                }
            made.setdefault(name, []).append(moved(name, row, row.token, present, **extra))
        for name, executions in made.items():
            rows_of(self._connection, name).bulk_create(executions)
        ready = [row.job_id for row in made.get("ReadyExecution", ())]
        Ready(self._connection, self._dialect).moved(ready)

    def _open(self, job_ids: Sequence[int]) -> QuerySet[Any]:
        return self._dependencies.filter(job_id__in=job_ids, state=DependencyState.OPEN)

    @property
    def _dependencies(self) -> QuerySet[Any]:
        return rows_of(self._connection, "Dependency")

    @property
    def _waiting(self) -> QuerySet[Any]:
        return rows_of(self._connection, "WaitingExecution")


def write_states(rows: QuerySet[Any], states: Mapping[int, MemberState | DependencyState]) -> None:
    """Write the states of rows, by their ids: one statement for each state and part of them."""
    for state, pks in by_value(states).items():
        for some in parts(pks):
            rows.filter(pk__in=some).update(state=state)
