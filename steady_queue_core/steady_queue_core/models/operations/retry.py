"""Retrying jobs that have failed for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Abs

from ...dialects.database import Database
from ..execution import BlockedExecution, FailedExecution, ReadyExecution
from ..retention import Retention
from ..semaphore import concurrency_keys, lock_semaphores

#: The state in which a job can be retried.
STATES = (FailedExecution,)


def retry(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Make these of all ``jobs`` ready again, with all their attempts, if they have failed; return
    the count, which is lower if others were faster. All in one transaction."""
    using, database = jobs.db, Database.of(jobs.db)
    with database.transaction():
        lock_semaphores(database, concurrency_keys(jobs.filter(pk__in=job_ids)))
        failed = FailedExecution.objects.using(using).filter(pk__in=job_ids).order_by("pk")
        found = [row.pk for row in database.lock_rows(failed, wait=True)]
        retried = jobs.filter(pk__in=found)
        present = database.storable_time()
        rows = [_execution(job, present) for job in retried]
        retried.update(
            attempts=0, finished_at=None, return_value=None, max_attempts=Abs("max_attempts")
        )
        blocked = [row for row in rows if isinstance(row, BlockedExecution)]
        BlockedExecution.objects.using(using).bulk_create(blocked)
        ready = [row for row in rows if isinstance(row, ReadyExecution)]
        ReadyExecution.objects.using(using).bulk_create(ready)
        FailedExecution.objects.using(using).filter(pk__in=found)._raw_delete(using)
        Retention.objects.using(using).filter(pk__in=found)._raw_delete(using)
        database.admit(sorted({row.concurrency_key for row in blocked}))
    if rows:
        database.ring_after_commit(sorted({row.queue_name for row in rows}))
    return len(rows)


def _execution(job: Any, present: datetime) -> ReadyExecution | BlockedExecution:
    """Return the row of a job that runs again; one with a limit has to get a new permit."""
    columns = {
        "job_id": job.pk,
        "queue_name": job.queue_name,
        "rank": job.rank,
        "token": job.token,
        "created_at": present,
    }
    if job.concurrency_key is None:
        return ReadyExecution(**columns)
    return BlockedExecution(**columns, concurrency_key=job.concurrency_key)
