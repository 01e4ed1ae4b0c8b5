"""Batches as their members end: who ends last moves on what has waited, exactly once.

Two transactions that each end one of the last two members see each other's member as pending. So
whoever does not end the last one either locks one that is pending, so that the transaction that
ends it comes later and looks again; or, if others are ending all of those, locks what waits, and
looks in a new statement. The first way lets thousands of members of one batch end at once.

Lock order: after everything that a settlement locks. First what members and dependencies have to
be written; then batches, the youngest first, so that a batch comes before the one that it belongs
to; then the jobs that wait, in the order of their ids. Whoever holds a lock of one kind waits for
no earlier one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, F, QuerySet
from django.db.models.functions import Abs

from . import tables
from .batches import parts
from .callbacks import jobs_at_end, with_enqueued
from .membership import (
    FAILURES,
    SEQUENCES,
    UNMET_STATES,
    DependencyState,
    MemberState,
    RunWhen,
)
from .operations import Operations
from .portable import aware, storable
from .portable.models import model, moved
from .present_rows import PresentRows
from .ready import Ready

# Written out: each settlement of a worker sends it, and Django takes longer to compose it than most
# databases to carry it out.
END_BY_JOB = f"UPDATE {tables.MEMBERS} SET state = {{}} WHERE state = {{}} AND job_id IN ({{}})"

#: Jobs that wait for more members than this are not locked by each that ends.
FEW = 8


class BatchClosed(Exception):
    """Jobs were to be added to batches that have ended. Nothing was stored."""

    def __init__(self, batch_ids: Collection[int]) -> None:
        super().__init__(f"batches {sorted(batch_ids)} have ended, or are gone")
        self.batch_ids = batch_ids


class Joins:
    """Ends members of batches. What it changes belongs in the transaction that ends their jobs."""

    def __init__(self, connection: BaseDatabaseWrapper, dialect: Operations) -> None:
        self.connection, self.dialect = connection, dialect
        self._present = PresentRows(connection, dialect)
        #: The queues of the jobs that were moved on.
        self.queue_names: dict[str, None] = {}

    def end(self, ended: Mapping[int, MemberState]) -> None:
        """End the members whose jobs are the keys of ``ended``."""
        members = self._pending(ended)
        ended = self._with_skipped(ended)
        self._write(members, ended)
        waiting = self._resolve({pk: ended[job_id] for pk, job_id, _ in members})
        self._end_batches({batch_id for _, _, batch_id in members}, waiting)
        self._move_on(waiting)

    def end_alone(self, ended: Mapping[int, MemberState], batch_ids: Collection[int]) -> None:
        """End the members whose jobs are the keys of ``ended``. Nothing waits for one of them,
        rather than for its batch; these are the batches, as the jobs name them. One that a damaged
        job does not name is left to maintenance."""
        self._write_by_job(ended)
        waiting = set[int]()
        self._end_batches(set(batch_ids), waiting)
        self._move_on(waiting)

    def end_lost(self, member_ids: Collection[int]) -> None:
        """End members that have neither a job nor a batch any more."""
        rows = self._members.filter(pk__in=member_ids, state=MemberState.PENDING)
        lost = dict(rows.order_by("pk").values_list("pk", "batch_id"))
        self._members.filter(pk__in=lost).update(state=MemberState.DISCARDED)
        waiting = self._resolve(dict.fromkeys(lost, MemberState.DISCARDED))
        self._end_batches(set(lost.values()), waiting)
        self._move_on(waiting)

    def try_end(self, batch_id: int) -> bool:
        """End a batch if none of its members is pending; return whether it has ended now."""
        waiting = set[int]()
        has_ended = self._end_batches({batch_id}, waiting)
        self._move_on(waiting)
        return has_ended

    def reopen(self, job_ids: Collection[int]) -> None:
        """Let the members whose jobs run again be pending, unless their batch has ended."""
        members = self._members.filter(job_id__in=job_ids).exclude(state=MemberState.PENDING)
        ended = self._present.of(members.values_list("batch_id", flat=True))
        batch_ids = set(ended) if job_ids else set()
        if not batch_ids:
            return
        rows = self._batches.filter(pk__in=batch_ids, finished_at=None).order_by("-pk")
        locked = [row.pk for row in self.dialect.lock_rows(self.connection, rows, wait=True)]
        members.filter(batch_id__in=locked).update(state=MemberState.PENDING)

    def resolve(self, ended: Mapping[int, MemberState]) -> None:
        """Move on what waits for these members, which have ended so."""
        self._move_on(self._resolve(ended))

    def release(self, job_ids: Collection[int]) -> None:
        """Move on those of these jobs that wait for nothing any more."""
        self._move_on(set(job_ids))

    def ring(self) -> None:
        """Notify listeners of the jobs that were moved on."""
        if self.queue_names:
            self.dialect.ring_after_commit(self.connection, list(self.queue_names))

    def lock_open(self, batch_ids: Collection[int]) -> set[int]:
        """Lock batches to which members are added; return those that take none any more."""
        rows = self._batches.filter(pk__in=batch_ids).order_by("-pk")
        locked = self.dialect.lock_rows(self.connection, rows, wait=True)
        taking = {row.pk for row in locked if row.finished_at is None and row.cancelled_at is None}
        return set(batch_ids) - taking

    def _pending(self, ended: Mapping[int, MemberState]) -> list[tuple[int, int, int]]:
        """Return the pending members of these jobs: their ids, jobs and batches."""
        found: list[tuple[int, int, int]] = []
        for some in parts(ended):
            rows = self._members.filter(job_id__in=some, state=MemberState.PENDING).order_by("pk")
            found += self._present.of(rows.values_list("pk", "job_id", "batch_id"))
        return found

    def _with_skipped(self, ended: Mapping[int, MemberState]) -> dict[int, MemberState]:
        """Tell those that were skipped from those that were cancelled."""
        cancelled = [pk for pk, state in ended.items() if state is MemberState.CANCELLED]
        skipped: dict[int, bool] = {}
        for some in parts(cancelled):
            unmet = self._dependencies.filter(job_id__in=some, state__in=UNMET_STATES)
            for job_id, state in self._present.of(unmet.values_list("job_id", "state")):
                skipped[job_id] = skipped.get(job_id, True) and state == DependencyState.UNMET
        return dict(ended) | {pk: MemberState.SKIPPED for pk, whole in skipped.items() if whole}

    def _write(
        self, members: Sequence[tuple[int, int, int]], ended: Mapping[int, MemberState]
    ) -> None:
        by_state: dict[MemberState, list[int]] = {}
        for pk, job_id, _ in members:
            by_state.setdefault(ended[job_id], []).append(pk)
        for state, pks in by_state.items():
            for some in parts(pks):
                self._members.filter(pk__in=some).update(state=state)

    def _write_by_job(self, ended: Mapping[int, MemberState]) -> None:
        """Write what has become of members, in one statement for most settlements."""
        by_state: dict[MemberState, list[int]] = {}
        for job_id, state in ended.items():
            by_state.setdefault(state, []).append(job_id)
        with self.connection.cursor() as cursor:
            for state, job_ids in by_state.items():
                for some in parts(sorted(job_ids)):
                    # Numbers, in the text: hundreds of parameters take drivers longer to place.
                    keys = ", ".join(str(int(job_id)) for job_id in some)
                    cursor.execute(END_BY_JOB.format(int(state), int(MemberState.PENDING), keys))

    def _resolve(self, parents: Mapping[int, MemberState]) -> set[int]:
        """Close what waits for these members; return the jobs that do."""
        waiting = set[int]()
        for some in parts(parents):
            rows = self._dependencies.filter(parent_id__in=some, state=DependencyState.OPEN)
            closed: dict[DependencyState, list[int]] = {}
            columns = rows.order_by("pk").values_list("pk", "job_id", "parent_id", "run_when")
            for pk, job_id, parent_id, run_when in self._present.of(columns):
                state = RunWhen(run_when).after(parents[parent_id])
                closed.setdefault(state, []).append(pk)
                waiting.add(job_id)
            for state, pks in closed.items():
                for part in parts(pks):
                    self._dependencies.filter(pk__in=part).update(state=state)
        return waiting

    def _end_batches(self, batch_ids: set[int], waiting: set[int]) -> bool:
        """End those of these batches, and of those that they belong to, whose members have all
        ended; add the jobs that wait for one to ``waiting``."""
        has_ended = False
        while batch_ids:
            batch_id = max(batch_ids)
            batch_ids.remove(batch_id)
            batch = self._ending(batch_id)
            if batch is None:
                continue
            has_ended = True
            state = self._finish(batch)
            if batch.member_id is None:
                continue
            member = self._members.filter(pk=batch.member_id, state=MemberState.PENDING)
            if member.update(state=state):
                waiting |= self._resolve({batch.member_id: state})
                batch_ids |= set(
                    self._members.filter(pk=batch.member_id).values_list("batch_id", flat=True)
                )
        return has_ended

    def _ending(self, batch_id: int) -> Any | None:
        """Return the locked row of a batch if it ends now."""
        members = self._members.filter(batch_id=batch_id, state=MemberState.PENDING)
        if self._is_left_to_another(members):
            return None
        rows = self.dialect.lock_rows(self.connection, self._batches.filter(pk=batch_id), wait=True)
        batch = next(iter(rows), None)
        if batch is None or batch.started_at is None or batch.finished_at is not None:
            return None
        # In a new statement, which sees what was committed before the lock was granted.
        return None if self._present.any_of(members) else batch

    def _is_left_to_another(self, pending: QuerySet[Any]) -> bool:
        """Lock one of these rows without waiting; return whether there was one. Whoever ends it
        looks for the others after this transaction."""
        last = pending.order_by("-pk")[:1]
        return bool(list(self.dialect.lock_rows(self.connection, last, wait=False)))

    def _finish(self, batch: Any) -> MemberState:
        """Write the end of a batch, and insert its callbacks."""
        counted = self._members.filter(batch_id=batch.pk).order_by().values_list("state")
        numbers = dict(self._present.of(counted.annotate(Count("pk"))))
        failed = sum(numbers.get(state, 0) for state in FAILURES)
        state = _state_of(batch, numbers, failed=bool(failed))
        changes = self._insert_callbacks(batch, state)
        present = storable(self.dialect.current_time(self.connection))
        self._batches.filter(pk=batch.pk).update(
            finished_at=present, total=sum(numbers.values()), failed=failed, **changes
        )
        return state

    def _insert_callbacks(self, batch: Any, state: MemberState) -> dict[str, str]:
        """Insert the callbacks of a batch that ends so; return what changes of its row."""
        if batch.callbacks is None or not (jobs := jobs_at_end(batch, state)):
            return {}
        stored = self.dialect.insert_jobs(self.connection, jobs)
        self.queue_names |= dict.fromkeys(job.queue_name for job in jobs)
        job_ids = [new.job_id for new in stored if new.job_id is not None]
        return {"callbacks": with_enqueued(batch.callbacks, job_ids)}

    def _move_on(self, job_ids: Collection[int]) -> None:
        """Move on those of these jobs that wait for nothing any more."""
        many = len(job_ids) > FEW
        for some in parts(sorted(job_ids)):
            rows = self._waiting.filter(pk__in=some).order_by("pk")
            left = [
                row.pk for row in self._present.of(rows)
                if many or row.width <= FEW or not self._is_left_to_another(self._open([row.pk]))
            ]  # fmt: skip
            if left:
                self._move_on_locked(left)

    def _move_on_locked(self, job_ids: Sequence[int]) -> None:
        rows = self._waiting.filter(pk__in=job_ids).order_by("pk")
        locked = list(self.dialect.lock_rows(self.connection, rows, wait=True))
        several = [row.pk for row in locked if row.width > 1]
        # In a new statement, as above.
        held = self._held(several) if several else set()
        moving = [row for row in locked if row.pk not in held]
        if moving:
            self._cancel_unmet(moving)
            self._insert_executions(moving)
            self._waiting.filter(pk__in=[row.pk for row in moving])._raw_delete(
                self.connection.alias
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
        jobs = model("Job").objects.using(self.connection.alias).filter(pk__in=skipped)
        jobs.update(max_attempts=-Abs("max_attempts"), token=F("token") + 1)

    def _insert_executions(self, rows: Sequence[Any]) -> None:
        present = self.dialect.current_time(self.connection)
        made: dict[str, list[Any]] = {}
        for row in rows:
            due = present + row.delay if row.delay is not None else row.due_at and aware(row.due_at)
            later = due if due is not None and due > present else None
            if later is None and row.concurrency_key is None:
                made.setdefault("ReadyExecution", []).append(
                    moved("ReadyExecution", row, row.token, present)
                )
                self.queue_names[row.queue_name] = None
            else:
                # The dispatcher gives out permits: a semaphore cannot be locked so late.
                made.setdefault("ScheduledExecution", []).append(
                    moved(
                        "ScheduledExecution",
                        row,
                        row.token,
                        present,
                        due_at=storable(later or present),
                        concurrency_key=row.concurrency_key,
                    )
                )
        for name, executions in made.items():
            model(name).objects.using(self.connection.alias).bulk_create(executions)
        ready = [row.job_id for row in made.get("ReadyExecution", ())]
        Ready(self.connection, self.dialect).moved(ready)

    def _open(self, job_ids: Sequence[int]) -> QuerySet[Any]:
        return self._dependencies.filter(job_id__in=job_ids, state=DependencyState.OPEN)

    @property
    def _batches(self) -> QuerySet[Any]:
        return self._rows("JobBatch")

    @property
    def _members(self) -> QuerySet[Any]:
        return self._rows("BatchMember")

    @property
    def _dependencies(self) -> QuerySet[Any]:
        return self._rows("Dependency")

    @property
    def _waiting(self) -> QuerySet[Any]:
        return self._rows("WaitingExecution")

    def _rows(self, name: str) -> QuerySet[Any]:
        rows: QuerySet[Any] = model(name).objects.using(self.connection.alias)
        return rows


def _state_of(batch: Any, numbers: Mapping[int, int], *, failed: bool) -> MemberState:
    """Return how a batch has ended whose members have these states."""
    if batch.cancelled_at is not None:
        return MemberState.CANCELLED
    if failed:
        return MemberState.FAILED
    for state in (MemberState.DISCARDED, MemberState.SKIPPED):
        if batch.kind in SEQUENCES and numbers.get(state):
            return state
    return MemberState.SUCCEEDED
