"""Trying again what has failed for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from ...dialects import portable
from ..base import queue_database
from ..execution import BlockedExecution, FailedExecution, ReadyExecution
from ..semaphore import concurrency_keys, lock_semaphores

#: The state that a job can be retried in.
STATES = (FailedExecution,)


def retry(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Make failed jobs ready, with all their attempts; return how many: somebody else may have
    been there before. All in one transaction."""
    using = jobs.db
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        lock_semaphores(connection, dialect, concurrency_keys(jobs.filter(pk__in=job_ids)))
        failed = FailedExecution.objects.using(using).filter(pk__in=job_ids).order_by("pk")
        found = [row.pk for row in dialect.lock_rows(connection, failed, wait=True)]
        retried = jobs.filter(pk__in=found)
        present = portable.storable(dialect.current_time(connection))
        placed = [_placed(job, present) for job in retried]
        retried.update(attempts=0, finished_at=None, return_value=None)
        blocked = [row for row in placed if isinstance(row, BlockedExecution)]
        BlockedExecution.objects.using(using).bulk_create(blocked)
        ready = [row for row in placed if isinstance(row, ReadyExecution)]
        ReadyExecution.objects.using(using).bulk_create(ready)
        FailedExecution.objects.using(using).filter(pk__in=found)._raw_delete(using)
        dialect.admit(connection, sorted({row.concurrency_key for row in blocked}))
    if placed:
        dialect.ring_after_commit(connection, sorted({row.queue_name for row in placed}))
    return len(placed)


def _placed(job: Any, present: datetime) -> ReadyExecution | BlockedExecution:
    """Return the execution of a job that runs again; one with a limit takes a permit anew."""
    where = {
        "job_id": job.pk,
        "queue_name": job.queue_name,
        "rank": job.rank,
        "token": job.token,
        "created_at": present,
    }
    if job.concurrency_key is None:
        return ReadyExecution(**where)
    return BlockedExecution(**where, concurrency_key=job.concurrency_key)
