"""Maintenance of batches: ending what others have left pending, and deleting those of old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from ...dialects import DependencyState, MemberState, portable
from ...dialects.callbacks import enqueued_ids
from ...dialects.database import Database
from ...dialects.joins import Joins
from ...dialects.portable.models import model
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..batch import BatchMember, Dependency, JobBatch
from ..execution import FailedExecution, WaitingExecution
from .sweep import Sweep

logger = get_logger("steady_queue.dispatcher")

#: Most rows that are repaired in one transaction.
BATCH = 500
#: After which time a batch is started whose block has not come to its end: its process is gone.
LONGEST_BLOCK = timedelta(hours=1)


class BatchMaintenance:
    """Repairs the batches of one database: only the loss of a database's host, statements in SQL,
    and Django's ``delete()`` leave something."""

    def __init__(self, using: str, jobs: QuerySet[Any]) -> None:
        self.using, self.jobs = using, jobs
        self.database = Database.of(using)

    def do(self) -> int:
        """End, start and move on what should have been; return the number of rows."""
        repaired = 0
        last = 0
        unfinished = JobBatch.objects.using(self.using).filter(finished_at=None).order_by("pk")
        while some := list(unfinished.filter(pk__gt=last)[:BATCH]):
            last = some[-1].pk
            repaired += self._repair_each(some)
        return repaired + self._close_dependencies() + self._move_on()

    def _repair_each(self, batches: Sequence[JobBatch]) -> int:
        """Repair batches, but those that the database refuses; return the number of rows."""
        repaired, refused = self.database.in_halves(
            batches, lambda some: sum(self._repair(each) for each in some)
        )
        for batch, error in refused.items():
            log_internal_error(
                logger,
                "Batch %d could not be looked after: the database refused it",
                batch.pk,
                error=error,
                extra=about("dispatcher.batch_refused"),
            )
        return repaired

    def _repair(self, batch: Any) -> int:
        database = self.database
        if batch.started_at is None:
            limit = portable.storable(database.current_time() - LONGEST_BLOCK)
            if batch.created_at >= limit:
                return 0
            with database.transaction():
                rows = JobBatch.objects.using(self.using).filter(pk=batch.pk, started_at=None)
                rows.update(started_at=database.storable_time())
        repaired = self.end_lost_members(batch.pk)
        with database.transaction():
            has_ended = database.end_if_done(batch.pk)
        return repaired + has_ended

    def end_lost_members(self, batch_id: int) -> int:
        """End the pending members of a batch that nothing else would end; return their number."""
        database, ended = self.database, 0
        while lost := self._lost_members(batch_id):
            with database.transaction():
                database.end_members(lost)
            ended += len(lost)
        while orphans := self._orphans(batch_id):
            with database.transaction():
                database.joined(partial(Joins.end_lost, member_ids=orphans))
            ended += len(orphans)
        return ended

    def _orphans(self, batch_id: int) -> list[int]:
        """Return pending members that have lost their jobs, or batches, to Django's ``delete()``:
        it sets the reference to these to NULL."""
        members = BatchMember.objects.using(self.using).filter(
            batch_id=batch_id,
            state=MemberState.PENDING,
            job__isnull=True,
            nested__isnull=True,
        )
        return list(members.order_by("pk").values_list("pk", flat=True)[:BATCH])

    def _lost_members(self, batch_id: int) -> dict[int, MemberState]:
        """Return pending members whose jobs have ended, or are gone, and what became of these."""
        going_on = self.jobs.filter(pk=OuterRef("job_id"), finished_at=None)
        members = BatchMember.objects.using(self.using).filter(
            ~Exists(going_on), batch_id=batch_id, state=MemberState.PENDING, job_id__isnull=False
        )
        job_ids = list(members.values_list("job_id", flat=True)[:BATCH])
        known = set(self.jobs.filter(pk__in=job_ids).values_list("pk", flat=True))
        failures = FailedExecution.objects.using(self.using).filter(pk__in=job_ids)
        failed = set(failures.values_list("pk", flat=True))
        return {
            pk: MemberState.FAILED if pk in failed
            else MemberState.SUCCEEDED if pk in known else MemberState.DISCARDED
            for pk in job_ids
            if pk is not None
        }  # fmt: skip

    def _close_dependencies(self) -> int:
        """Close what waits for members that have ended, or are gone."""
        pending = BatchMember.objects.using(self.using).filter(
            pk=OuterRef("parent_id"), state=MemberState.PENDING
        )
        rows = Dependency.objects.using(self.using).filter(
            ~Exists(pending), state=DependencyState.OPEN, job__waitingexecution__isnull=False
        )
        closed = 0
        while some := dict(rows.values_list("parent_id", "parent__state")[:BATCH]):
            states = {
                pk: MemberState.DISCARDED if state is None else MemberState(state)
                for pk, state in some.items()
            }
            with self.database.transaction():
                self.database.joined(partial(Joins.resolve, ended=states))
            closed += len(some)
        return closed

    def _move_on(self) -> int:
        """Move on what waits for nothing."""
        opened = Dependency.objects.using(self.using).filter(
            job_id=OuterRef("pk"), state=DependencyState.OPEN
        )
        idle = WaitingExecution.objects.using(self.using).filter(~Exists(opened)).order_by("pk")
        job_ids = list(idle.values_list("pk", flat=True)[:BATCH])
        if job_ids:
            with self.database.transaction():
                self.database.joined(partial(Joins.release, job_ids=job_ids))
        return len(job_ids)


class FinishedBatches(Sweep):
    """The batches that ended before a point in time, with their members."""

    def __init__(self, using: str, before: datetime) -> None:
        super().__init__(using, before)
        self._batches = JobBatch.objects.using(using)

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._batches, "finished_at")

    def _delete(self, keys: Sequence[int]) -> int:
        chosen = self._batches.filter(pk__in=keys, finished_at__lt=self.before)
        # One that belongs to a batch that goes on is one of its results. The outer one may be gone:
        # this one was retried after its end.
        going_on = BatchMember.objects.using(self.using).filter(
            pk=OuterRef("member_id"), batch__isnull=False, batch__finished_at=None
        )
        chosen = chosen.filter(~Exists(going_on))
        awaited = dict(chosen.exclude(callbacks=None).values_list("pk", "callbacks"))
        kept = self._awaited(awaited) if awaited else set()
        found = [pk for pk in chosen.values_list("pk", flat=True) if pk not in kept]
        for pk in found:
            self._delete_batch(pk)
        return len(found)

    def _awaited(self, callbacks: Mapping[int, object]) -> set[int]:
        """Return the batches of which a callback has not ended: it may ask for its batch."""
        owners = {job_id: pk for pk, text in callbacks.items() for job_id in enqueued_ids(text)}
        pending = (
            model("Job").objects.using(self.using).filter(pk__in=list(owners), finished_at=None)
        )
        return {owners[job_id] for job_id in pending.values_list("pk", flat=True)}

    def _delete_batch(self, pk: int) -> None:
        members = BatchMember.objects.using(self.using).filter(batch_id=pk).order_by("pk")
        while some := dict(members.values_list("pk", "job_id")[:BATCH]):
            job_ids = [job_id for job_id in some.values() if job_id is not None]
            with self.database.transaction():
                waited = Dependency.objects.using(self.using).filter(job_id__in=job_ids)
                waited._raw_delete(self.using)
                rows = BatchMember.objects.using(self.using).filter(pk__in=list(some))
                rows._raw_delete(self.using)
        with self.database.transaction():
            # Somebody may just have had its jobs run again.
            ended = self._batches.filter(pk=pk, finished_at__lt=self.before)
            ended._raw_delete(self.using)
