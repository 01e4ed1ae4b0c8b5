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

from collections.abc import Collection, Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, QuerySet

from . import tables
from .batches import by_value, parts
from .callbacks import jobs_at_end, with_enqueued
from .dependents import Dependents, write_states
from .membership import FAILURES, SEQUENCES, MemberState
from .operations import Operations
from .portable import storable
from .portable.models import rows_of
from .present_rows import PresentRows
from .records import Refused

# Written out: each settlement of a worker sends it, and Django takes longer to compose it than most
# databases to carry it out.
END_BY_JOB = f"UPDATE {tables.MEMBERS} SET state = {{}} WHERE state = {{}} AND job_id IN ({{}})"


class BatchClosed(Refused):
    """Jobs were to be added to batches that have ended."""

    def __init__(self, batch_ids: Collection[int]) -> None:
        super().__init__(f"batches {sorted(batch_ids)} have ended, or are gone")
        self.batch_ids = batch_ids


class Joins:
    """Ends members of batches. What it changes belongs in the transaction that ends their jobs."""

    def __init__(self, connection: BaseDatabaseWrapper, dialect: Operations) -> None:
        self._connection, self._dialect = connection, dialect
        self._present = PresentRows(connection, dialect)
        self._dependents = Dependents(connection, dialect)

    def end(self, ended: Mapping[int, MemberState]) -> None:
        """End the members whose jobs are the keys of ``ended``."""
        members = self._pending(ended)
        cancelled = [pk for pk, state in ended.items() if state is MemberState.CANCELLED]
        skipped = self._dependents.skipped_of(cancelled)
        ended = dict(ended) | dict.fromkeys(skipped, MemberState.SKIPPED)
        states = {pk: ended[job_id] for pk, job_id, _ in members}
        write_states(self._members, states)
        waiting = self._dependents.resolve(states)
        self._end_batches({batch_id for _, _, batch_id in members}, waiting)

    def end_alone(self, ended: Mapping[int, MemberState], batch_ids: Collection[int]) -> None:
        """End the members whose jobs are the keys of ``ended``. Nothing waits for one of them,
        rather than for its batch; these are the batches, as the jobs name them. One that a damaged
        job does not name is left to maintenance."""
        self._write_by_job(ended)
        self._end_batches(set(batch_ids), set())

    def end_lost(self, member_ids: Collection[int]) -> None:
        """End members that have neither a job nor a batch any more."""
        rows = self._members.filter(pk__in=member_ids, state=MemberState.PENDING)
        lost = dict(rows.order_by("pk").values_list("pk", "batch_id"))
        self._members.filter(pk__in=lost).update(state=MemberState.DISCARDED)
        waiting = self._dependents.resolve(dict.fromkeys(lost, MemberState.DISCARDED))
        self._end_batches(set(lost.values()), waiting)

    def try_end(self, batch_id: int) -> bool:
        """End a batch if none of its members is pending; return whether it has ended now."""
        return self._end_batches({batch_id}, set())

    def reopen(self, job_ids: Collection[int]) -> None:
        """Let the members whose jobs run again be pending, unless their batch has ended."""
        members = self._members.filter(job_id__in=job_ids).exclude(state=MemberState.PENDING)
        ended = self._present.of(members.values_list("batch_id", flat=True))
        batch_ids = set(ended) if job_ids else set()
        if not batch_ids:
            return
        rows = self._batches.filter(pk__in=batch_ids, finished_at=None).order_by("-pk")
        locked = [row.pk for row in self._dialect.lock_rows(self._connection, rows, wait=True)]
        members.filter(batch_id__in=locked).update(state=MemberState.PENDING)

    def resolve(self, ended: Mapping[int, MemberState]) -> None:
        """Move on what waits for these members, which have ended so."""
        self._dependents.move_on(self._dependents.resolve(ended))

    def release(self, job_ids: Collection[int]) -> None:
        """Move on those of these jobs that wait for nothing any more."""
        self._dependents.move_on(set(job_ids))

    def ring(self) -> None:
        """Notify listeners of the jobs that were moved on."""
        if queue_names := self._dependents.queue_names:
            self._dialect.ring_after_commit(self._connection, list(queue_names))

    def lock_open(self, batch_ids: Collection[int]) -> set[int]:
        """Lock batches to which members are added; return those that take none any more."""
        rows = self._batches.filter(pk__in=batch_ids).order_by("-pk")
        locked = self._dialect.lock_rows(self._connection, rows, wait=True)
        taking = {row.pk for row in locked if row.finished_at is None and row.cancelled_at is None}
        return set(batch_ids) - taking

    def _pending(self, ended: Mapping[int, MemberState]) -> list[tuple[int, int, int]]:
        """Return the pending members of these jobs: their ids, jobs and batches."""
        found: list[tuple[int, int, int]] = []
        for some in parts(ended):
            rows = self._members.filter(job_id__in=some, state=MemberState.PENDING).order_by("pk")
            found += self._present.of(rows.values_list("pk", "job_id", "batch_id"))
        return found

    def _write_by_job(self, ended: Mapping[int, MemberState]) -> None:
        """Write what has become of members, in one statement for most settlements."""
        with self._connection.cursor() as cursor:
            for state, job_ids in by_value(ended).items():
                for some in parts(sorted(job_ids)):
                    # Numbers, in the text: hundreds of parameters take drivers longer to place.
                    keys = ", ".join(str(int(job_id)) for job_id in some)
                    cursor.execute(END_BY_JOB.format(int(state), int(MemberState.PENDING), keys))

    def _end_batches(self, batch_ids: set[int], waiting: set[int]) -> bool:
        """End those of these batches, and of those that they belong to, whose members have all
        ended; return whether there were any. Then move on ``waiting``, and the jobs that wait for
        one of them."""
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
                waiting |= self._dependents.resolve({batch.member_id: state})
                batch_ids |= set(
                    self._members.filter(pk=batch.member_id).values_list("batch_id", flat=True)
                )
        self._dependents.move_on(waiting)
        return has_ended

    def _ending(self, batch_id: int) -> Any | None:
        """Return the locked row of a batch if it ends now."""
        members = self._members.filter(batch_id=batch_id, state=MemberState.PENDING)
        # Whoever ends that one looks for the others after this transaction.
        if self._present.lock_last(members):
            return None
        rows = self._dialect.lock_rows(
            self._connection, self._batches.filter(pk=batch_id), wait=True
        )
        batch = next(iter(rows), None)
        if batch is None or batch.started_at is None or batch.finished_at is not None:
            return None
        # In a new statement, which sees what was committed before the lock was granted.
        return None if self._present.any_of(members) else batch

    def _finish(self, batch: Any) -> MemberState:
        """Write the end of a batch, and insert its callbacks."""
        counted = self._members.filter(batch_id=batch.pk).order_by().values_list("state")
        numbers = dict(self._present.of(counted.annotate(Count("pk"))))
        failed = sum(numbers.get(state, 0) for state in FAILURES)
        state = _state_of(batch, numbers, failed=bool(failed))
        changes = self._insert_callbacks(batch, state)
        present = storable(self._dialect.current_time(self._connection))
        self._batches.filter(pk=batch.pk).update(
            finished_at=present, total=sum(numbers.values()), failed=failed, **changes
        )
        return state

    def _insert_callbacks(self, batch: Any, state: MemberState) -> dict[str, str]:
        """Insert the callbacks of a batch that ends so; return what changes of its row."""
        if batch.callbacks is None or not (jobs := jobs_at_end(batch, state)):
            return {}
        stored = self._dialect.insert_jobs(self._connection, jobs)
        self._dependents.queue_names |= dict.fromkeys(job.queue_name for job in jobs)
        job_ids = [new.job_id for new in stored if new.job_id is not None]
        return {"callbacks": with_enqueued(batch.callbacks, job_ids)}

    @property
    def _batches(self) -> QuerySet[Any]:
        return rows_of(self._connection, "JobBatch")

    @property
    def _members(self) -> QuerySet[Any]:
        return rows_of(self._connection, "BatchMember")


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
