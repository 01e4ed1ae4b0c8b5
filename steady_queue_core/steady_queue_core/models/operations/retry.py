"""Retrying jobs that have failed for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet
from django.db.models.functions import Abs

from ...dialects import JobKey
from ...dialects.database import Database
from ..execution import BlockedExecution, FailedExecution, ReadyExecution
from ..retention import Retention
from .transition import Transition, ids_of

#: The state in which a job can be retried.
STATES = (FailedExecution,)
#: What the job then has of its outcome and its attempts.
ANEW: dict[str, Any] = {
    "attempts": 0,
    "finished_at": None,
    "return_value": None,
    "max_attempts": Abs("max_attempts"),
}


def retry(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Make these of all ``jobs`` ready again, with all their attempts, if they have failed; return
    the count, which is lower if others were faster. All in one transaction.

    A job whose unique key another job has stays as it is.
    """
    return len(Transition.perform(jobs, job_ids, _retry))


def _retry(act: Transition) -> list[ReadyExecution | BlockedExecution]:
    """Return the new executions of those that were retried."""
    database, using = act.database, act.database.alias
    # Of all of them, for one that has not failed yet may have, by the time it is locked.
    wanted = act.keys.unique
    locked = database.unique_keys.lock({key.key for key in wanted.values()})
    holders = database.unique_keys.holders(locked)
    [(_, failed)] = act.hold(STATES)
    found = ids_of(failed)
    if wanted:
        found = _without_conflicts(found, wanted, holders)
        _take(database, locked, {wanted[pk].key: pk for pk in found if pk in wanted})
    retried = act.jobs.filter(pk__in=found)
    present = database.storable_time()
    # Locked, to see what is newer than the snapshot of a caller's transaction.
    locked_jobs = database.lock_rows(retried.order_by("pk"), wait=True)
    rows = [_execution(job, present) for job in locked_jobs]
    retried.update(**ANEW, token=F("token") + 1)
    blocked = [row for row in rows if isinstance(row, BlockedExecution)]
    BlockedExecution.objects.using(using).bulk_create(blocked)
    ready = [row for row in rows if isinstance(row, ReadyExecution)]
    ReadyExecution.objects.using(using).bulk_create(ready)
    forget_failures(using, found)
    limited = sorted({row.concurrency_key for row in blocked})
    database.admit(limited, ids_of(ready))
    database.joins.reopen([pk for pk in act.keys.members if pk in found])
    if rows:
        database.ring_after_commit(sorted({row.queue_name for row in rows}))
    return rows


def forget_failures(using: str, job_ids: Sequence[int]) -> None:
    """Delete what says that jobs have failed, and how long they are kept."""
    FailedExecution.objects.using(using).filter(pk__in=job_ids)._raw_delete(using)
    Retention.objects.using(using).filter(pk__in=job_ids)._raw_delete(using)


def key_holder(jobs: QuerySet[Any]) -> tuple[str, int] | None:
    """Return the unique key of the first of ``jobs`` that has failed, and the job that has it now,
    if there is one."""
    return holder_of_key(jobs.filter(failedexecution__isnull=False))


def holder_of_key(jobs: QuerySet[Any]) -> tuple[str, int] | None:
    """Return the unique key of the first of ``jobs``, and the job that has it now, if there is
    one."""
    key = JobKey.read(jobs.values_list("metadata", flat=True).first())
    keys = Database.of(jobs.db).unique_keys
    holder = None if key is None else keys.holders(keys.read({key.key})).get(key.key)
    return None if key is None or holder is None else (key.key, holder.pk)


def _without_conflicts(
    job_ids: Sequence[int], wanted: Mapping[int, JobKey], holders: Mapping[str, Any]
) -> list[int]:
    """Return those of the jobs that may run: of several with the same key, the first one."""
    owners = {key: job.pk for key, job in holders.items()}
    return [
        pk for pk in job_ids
        if pk not in wanted or owners.setdefault(wanted[pk].key, pk) == pk
    ]  # fmt: skip


def _take(database: Database, locked: Mapping[str, Any], owners: Mapping[str, int]) -> None:
    database.unique_keys.take(owners)
    # Nobody has got these: others were faster to retry or discard the job.
    database.unique_keys.free({key: None for key in locked if key not in owners})


def _execution(job: Any, present: datetime) -> ReadyExecution | BlockedExecution:
    """Return the row of a job that runs again; one with a limit has to get a new permit."""
    # A claim may read the execution as of now, and its job as of a moment before: by another token
    # it knows, and reads the job again.
    columns = {
        "job_id": job.pk,
        "queue_name": job.queue_name,
        "rank": job.rank,
        "token": job.token + 1,
        "created_at": present,
    }
    if job.concurrency_key is None:
        return ReadyExecution(**columns)
    return BlockedExecution(**columns, concurrency_key=job.concurrency_key)
