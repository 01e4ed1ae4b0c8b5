"""The claims that processes hold."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from ..dialects import EXECUTION_COLUMNS, JOB_COLUMNS, ClaimedJob, portable
from ..dialects.database import Database
from ..internal_errors import log_internal_error
from ..logging import about, get_logger
from .execution import ClaimedExecution
from .job import Job
from .process import Process

logger = get_logger("steady_queue.supervisor")

#: Stands in for the columns of a job that cannot be read: enough to end its claim.
UNREADABLE_JOB: dict[str, Any] = dict.fromkeys(JOB_COLUMNS) | {
    "task_path": "",
    "backend_name": "",
    "arguments": "",
    "attempts": 0,
    "max_attempts": 1,
}


def held_by(
    using: str, process_id: int, limit: int, known: Collection[int] = ()
) -> list[ClaimedJob]:
    """Return up to ``limit`` claims of a process with their jobs, oldest job first, except those
    of the jobs ``known``."""
    rows = ClaimedExecution.objects.using(using).filter(process_id=process_id)
    return _read(rows.exclude(job_id__in=known), limit)


def cancelled(using: str, process_id: int) -> list[tuple[int, int]]:
    """Return the job and the token of each claim of a process whose job was asked to end."""
    rows = ClaimedExecution.objects.using(using).filter(process_id=process_id)
    return list(rows.filter(job__max_attempts__lt=0).values_list("job_id", "token"))


def held_by_any(using: str, process_ids: Collection[int], limit: int) -> list[ClaimedJob]:
    """Return up to ``limit`` claims of these processes."""
    rows = ClaimedExecution.objects.using(using).filter(process_id__in=process_ids)
    return _read(rows, limit)


def without_process(using: str, limit: int) -> list[ClaimedJob]:
    """Return up to ``limit`` claims whose process is not registered."""
    registered = Process.objects.using(using).filter(pk=OuterRef("process_id"))
    return _read(ClaimedExecution.objects.using(using).filter(~Exists(registered)), limit)


def discard_without_job(using: str, limit: int) -> None:
    """Delete up to ``limit`` claims of jobs that no longer exist."""
    job = Job.objects.using(using).filter(pk=OuterRef("pk"))
    rows = ClaimedExecution.objects.using(using).filter(~Exists(job))
    # Found first: a deletion would wait for all locked claims on some databases.
    if job_ids := list(rows.values_list("pk", flat=True)[:limit]):
        with Database.of(using).transaction():
            rows.filter(pk__in=job_ids)._raw_delete(using)


def _read(rows: QuerySet[ClaimedExecution], limit: int) -> list[ClaimedJob]:
    rows = rows.order_by("job_id")
    try:
        return [_claimed_job(row) for row in rows.select_related("job")[:limit]]
    except (ValueError, TypeError, AttributeError):
        job_ids = list(rows.values_list("job_id", flat=True)[:limit])
        return [_readable(rows, job_id) for job_id in job_ids]


def _readable(rows: QuerySet[ClaimedExecution], job_id: Any) -> ClaimedJob:
    """Return a claim; if the row of its job is damaged, with only what ends the claim."""
    row = rows.filter(job_id=job_id)
    try:
        return _claimed_job(row.select_related("job").get())
    except (ValueError, TypeError, AttributeError):
        log_internal_error(
            logger,
            "The row of job %s is damaged",
            job_id,
            extra=about("task.damaged", task_id=str(job_id)),
        )
    known = row.values(*EXECUTION_COLUMNS).get()
    job = Job.objects.using(rows.db).filter(pk=job_id)
    known["concurrency_key"] = job.values_list("concurrency_key", flat=True).first()
    present = Database.of(rows.db).current_time()
    return ClaimedJob.from_row(UNREADABLE_JOB | known, present, lambda value, default: default)


def _claimed_job(row: ClaimedExecution) -> ClaimedJob:
    return portable.claimed_job(row, row.job, portable.aware(row.created_at))
