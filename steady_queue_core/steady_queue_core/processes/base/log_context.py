"""The context of log records about jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...dialects import ClaimedJob
from ...logging import RunningTask, about


def about_job(event: str, job: ClaimedJob, **details: Any) -> dict[str, Any]:
    """Return the ``extra`` of a log record about a claimed job."""
    return about(
        event,
        backend=job.backend_name,
        queue=job.queue_name,
        task=job.task_path,
        task_id=str(job.job_id),
        attempt=attempt_of(job),
        **details,
    )


def named(job: ClaimedJob) -> str:
    """Return a short text that names a claimed job and its task."""
    return f"job {job.job_id} ({job.task_path}, attempt {attempt_of(job)})"


def attempt_of(job: ClaimedJob) -> int | None:
    """Return the attempt number of a claimed job, or ``None`` if its row is damaged."""
    # SQLite lets a row hold something other than a number.
    return job.attempts + 1 if isinstance(job.attempts, int) else None


def running_of(job: ClaimedJob) -> RunningTask:
    """Return the log context of code that runs a claimed job."""
    return RunningTask(job.task_path, str(job.job_id), attempt_of(job))


def milliseconds(since: datetime | None, until: datetime | None) -> float | None:
    """Return the milliseconds between two instants, or ``None`` if either is unknown."""
    if since is None or until is None:
        return None
    return round(max(0.0, (until - since).total_seconds()) * 1000, 3)
