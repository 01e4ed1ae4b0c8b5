"""Trying again what has failed for good."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from ..dialects import portable
from .base import queue_database
from .execution import FailedExecution, ReadyExecution
from .job import Job

#: Jobs that have failed for good.
FAILED = Q(failedexecution__isnull=False)


def retry(using: str, job_ids: Sequence[int]) -> int:
    """Make failed jobs ready, with all their attempts; return how many: somebody else may have
    been there before. All in one transaction."""
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        failed = FailedExecution.objects.using(using).filter(pk__in=job_ids).order_by("pk")
        found = [row.pk for row in dialect.lock_rows(connection, failed, wait=True)]
        jobs = Job.objects.using(using).filter(pk__in=found)
        present = portable.storable(dialect.current_time(connection))
        ready = [
            ReadyExecution(
                job_id=job.pk,
                queue_name=job.queue_name,
                rank=job.rank,
                token=job.token,
                created_at=present,
            )
            for job in jobs
        ]
        jobs.update(attempts=0, finished_at=None, return_value=None)
        ReadyExecution.objects.using(using).bulk_create(ready)
        FailedExecution.objects.using(using).filter(pk__in=found)._raw_delete(using)
    if ready:
        dialect.ring_after_commit(connection, sorted({row.queue_name for row in ready}))
    return len(ready)
