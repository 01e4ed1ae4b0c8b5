"""Running the jobs of a batch again that have failed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet

from ...dialects import DependencyState, MemberState
from ...dialects.database import Database
from ...dialects.joins import Joins
from ...dialects.membership import FAILURES
from ..batch import BatchMember, Dependency, JobBatch
from ..execution import FailedExecution, WaitingExecution
from . import retry
from .rows import parts

#: The states of members that do not run again unless they are retried.
OVER = (*FAILURES, MemberState.DISCARDED)


class Failed(NamedTuple):
    """What has failed, or was cancelled, of a batch and of those in it."""

    batch_ids: list[int]
    #: The members whose jobs are gone.
    discarded: list[int]
    #: The jobs of the members; ``None`` for those that are batches.
    jobs: dict[int, int | None]

    @property
    def job_ids(self) -> list[int]:
        return [job_id for job_id in self.jobs.values() if job_id is not None]


def retry_batch(database: Database, jobs: QuerySet[Any], batch_id: int) -> int:
    """Run the jobs of a batch again that have failed or were cancelled; return their number.

    Those that had waited for one of these wait again. A batch that had ended goes on, takes jobs
    again, and enqueues its callbacks at its end once more. ``jobs`` are all jobs.
    """
    failed = _failed(database.alias, batch_id)
    if not failed.jobs:
        return 0
    retried = _retried(jobs, failed)
    database.in_transaction(partial(_go_on, database, failed, retried))
    # Before the others run, which might end unnoticed by those that wait for them.
    dependent = _dependent(database.alias, failed)
    number = sum(
        database.in_transaction(partial(_wait_again, database, jobs, some))
        for some in parts(dependent)
    )
    others = [pk for pk in failed.job_ids if pk not in set(dependent)]
    number += sum(retry.retry(jobs, some) for some in parts(others))
    _end_what_is_over(database, jobs, retried)
    _close_dependencies(database, failed)
    database.in_transaction(partial(_end_if_done, database, failed))
    return number


def _end_if_done(database: Database, failed: Failed) -> None:
    for pk in sorted(failed.batch_ids, reverse=True):
        database.end_if_done(pk)


def _failed(using: str, batch_id: int) -> Failed:
    failed = Failed([batch_id], [], {})
    for pk in failed.batch_ids:  # Which grows meanwhile.
        members = BatchMember.objects.using(using).filter(batch_id=pk).order_by("pk")
        found = dict(members.filter(state__in=FAILURES).values_list("pk", "job_id"))
        failed.jobs.update(found)
        discarded = members.filter(state=MemberState.DISCARDED)
        failed.discarded.extend(discarded.values_list("pk", flat=True))
        batches = [member for member, job_id in found.items() if job_id is None]
        for some in parts(batches):
            nested = JobBatch.objects.using(using).filter(member_id__in=some).order_by("pk")
            # A damaged row may say that a batch is in itself.
            known = set(failed.batch_ids)
            found_in = nested.values_list("pk", flat=True)
            failed.batch_ids.extend(each for each in found_in if each not in known)
    return failed


def _retried(jobs: QuerySet[Any], failed: Failed) -> list[int]:
    """Return the jobs that have failed, and were retried one by one after the end of their batch,
    which they did not change."""
    return [
        pk for some in parts(failed.job_ids)
        for pk in jobs.filter(pk__in=some, failedexecution=None).values_list("pk", flat=True)
    ]  # fmt: skip


def _go_on(database: Database, failed: Failed, retried: Collection[int]) -> None:
    """Let the batches be going on, and be awaited, with what had waited for one of the members: in
    the current transaction."""
    using, jobs = database.alias, set(failed.job_ids)
    for pk in sorted(failed.batch_ids, reverse=True):
        JobBatch.objects.using(using).filter(pk=pk).update(
            finished_at=None, cancelled_at=None, total=None, failed=None
        )
    _reopen_in_outer(database, failed.batch_ids[0])
    members = BatchMember.objects.using(using)
    # Without those whose batches were cleared: nothing would end them.
    for some in parts(failed.batch_ids[1:]):
        keys = list(members.filter(nested__in=some).values_list("pk", flat=True))
        members.filter(pk__in=keys).update(state=MemberState.PENDING)
    for some in parts(retried):
        members.filter(job_id__in=some).update(state=MemberState.PENDING)
    for some in parts([*failed.jobs, *failed.discarded]):
        rows = Dependency.objects.using(using).filter(parent_id__in=some)
        rows = rows.exclude(state=DependencyState.OPEN)
        again = [pk for pk, job_id in rows.values_list("pk", "job_id") if job_id in jobs]
        for part in parts(again):
            Dependency.objects.using(using).filter(pk__in=part).update(state=DependencyState.OPEN)


def _reopen_in_outer(database: Database, batch_id: int) -> None:
    """Let a batch be pending in the one that it belongs to, unless that has ended."""
    using = database.alias
    member = BatchMember.objects.using(using).filter(nested=batch_id).first()
    if member is None or member.state == MemberState.PENDING:
        return
    outer = JobBatch.objects.using(using).filter(pk=member.batch_id, finished_at=None)
    if list(database.lock_rows(outer, wait=True)):
        BatchMember.objects.using(using).filter(pk=member.pk).update(state=MemberState.PENDING)


def _end_what_is_over(database: Database, jobs: QuerySet[Any], retried: Collection[int]) -> None:
    """End the members whose jobs have ended again, before these were pending."""

    def end(some: Sequence[int]) -> None:
        failures = FailedExecution.objects.using(database.alias).filter(pk__in=some)
        failed = set(failures.values_list("pk", flat=True))
        over = jobs.filter(pk__in=some).exclude(finished_at=None).values_list("pk", flat=True)
        database.end_members({
            pk: MemberState.FAILED if pk in failed else MemberState.SUCCEEDED for pk in over
        })  # fmt: skip

    for some in parts(retried):
        database.in_transaction(partial(end, some))


def _close_dependencies(database: Database, failed: Failed) -> None:
    """Move on what waits for members that do not run again, as their jobs are gone."""
    for some in parts([*failed.jobs, *failed.discarded]):
        rows = BatchMember.objects.using(database.alias).filter(pk__in=some, state__in=OVER)
        states = {pk: MemberState(state) for pk, state in rows.values_list("pk", "state")}
        resolve = partial(Joins.resolve, ended=states)
        database.in_transaction(partial(database.joined, resolve))


def _dependent(using: str, failed: Failed) -> list[int]:
    """Return the jobs that have something to wait for."""
    found: set[int] = set()
    for some in parts(failed.job_ids):
        rows = Dependency.objects.using(using).filter(job_id__in=some, state=DependencyState.OPEN)
        found |= set(rows.values_list("job_id", flat=True))
    return sorted(found)


def _wait_again(database: Database, jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Move failed jobs to those that wait, in the current transaction; return their number."""
    using = database.alias
    failures = FailedExecution.objects.using(using).filter(pk__in=job_ids).order_by("pk")
    found = [row.pk for row in database.lock_rows(failures, wait=True)]
    counted = Dependency.objects.using(using).filter(job_id__in=found).order_by()
    widths = dict(counted.values_list("job_id").annotate(Count("pk")))
    chosen = jobs.filter(pk__in=found)
    present = database.storable_time()
    WaitingExecution.objects.using(using).bulk_create(
        WaitingExecution(
            job_id=job.pk,
            queue_name=job.queue_name,
            rank=job.rank,
            token=job.token,
            created_at=present,
            width=widths.get(job.pk, 0),
            concurrency_key=job.concurrency_key,
        )
        for job in chosen
    )
    chosen.update(**retry.ANEW)
    retry.forget_failures(using, found)
    database.joins.reopen(found)
    return len(found)
