"""Reading the claims that a process holds."""

from __future__ import annotations

from ..dialects import ClaimedJob, portable
from .base import queue_database
from .execution import ClaimedExecution
from .job import Job
from .process import Process


def held_by(using: str, process_id: int, limit: int) -> list[ClaimedJob]:
    """Return up to ``limit`` claims of a process, with their jobs, oldest job first."""
    rows = ClaimedExecution.objects.using(using).filter(process_id=process_id)
    return [_claimed_job(row) for row in rows.select_related("job").order_by("job_id")[:limit]]


def without_process(using: str, limit: int) -> list[ClaimedJob]:
    """Return up to ``limit`` claims whose process is not registered."""
    registered = Process.objects.using(using).values("pk")
    rows = ClaimedExecution.objects.using(using).exclude(process_id__in=registered)
    return [_claimed_job(row) for row in rows.select_related("job").order_by("job_id")[:limit]]


def discard_without_job(using: str) -> int:
    """Delete the claims of jobs that do not exist any more; return how many there were."""
    connection, dialect = queue_database(using)
    jobs = Job.objects.using(using).values("pk")
    with dialect.transaction(connection):
        rows = ClaimedExecution.objects.using(using).exclude(job_id__in=jobs)
        return rows._raw_delete(using)


def _claimed_job(row: ClaimedExecution) -> ClaimedJob:
    job = row.job
    return ClaimedJob(
        job_id=job.pk,
        token=row.token,
        queue_name=row.queue_name,
        rank=row.rank,
        task_path=job.task_path,
        backend_name=job.backend_name,
        arguments=job.arguments,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        worker_ids=job.worker_ids,
        errors=job.errors,
        enqueued_at=portable.aware(job.enqueued_at),
        started_at=portable.aware(job.started_at) if job.started_at else None,
        claimed_at=portable.aware(row.created_at),
    )
