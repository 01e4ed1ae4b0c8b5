"""What the log says of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...dialects import ClaimedJob
from ...logging import RunningTask, about


def about_job(event: str, job: ClaimedJob, **facts: Any) -> dict[str, Any]:
    """Return the ``extra`` of a log record about a claimed job."""
    return about(
        event,
        backend=job.backend_name,
        queue=job.queue_name,
        task=job.task_path,
        task_id=str(job.job_id),
        attempt=attempt_of(job),
        **facts,
    )


def attempt_of(job: ClaimedJob) -> int | None:
    """Return the number of the attempt that a claim is for; ``None``: its row does not say."""
    # SQLite lets a row hold something other than a number.
    return job.attempts + 1 if isinstance(job.attempts, int) else None


def running_of(job: ClaimedJob) -> RunningTask:
    """Return what the log says of those who are at work on a job."""
    return RunningTask(job.task_path, str(job.job_id), attempt_of(job))


def milliseconds(since: datetime | None, until: datetime | None) -> float | None:
    """Return the time between two instants, in milliseconds; ``None`` if one is not known."""
    if since is None or until is None:
        return None
    return round(max(0.0, (until - since).total_seconds()) * 1000, 3)
