"""Splits the jobs of one enqueue into statements of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from .records import NewJob

#: Most jobs of one statement, and about as much text.
MOST_JOBS, MOST_TEXT = 1_000, 2**22


def split(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Yield batches of ``jobs`` in their order; one empty batch if there are none."""
    batch: list[NewJob] = []
    text = 0
    for job in jobs:
        # Without arguments, the database refuses the job.
        size = len(job.arguments or "") + len(job.metadata or "")
        if batch and (len(batch) >= MOST_JOBS or text + size > MOST_TEXT):
            yield batch
            batch, text = [], 0
        batch.append(job)
        text += size
    yield batch


def limits_by_key(jobs: Sequence[NewJob], present: datetime) -> dict[str, int]:
    """Return the concurrency limits of the jobs that are due, by their sorted keys.

    The job that was enqueued last decides the limit of its key; a future job does not count yet.
    """
    limits = {job.limit.key: job.limit.to for job in jobs if job.limit and _is_due(job, present)}
    return dict(sorted(limits.items()))


def _is_due(job: NewJob, present: datetime) -> bool:
    if job.delay is not None:
        return job.delay <= timedelta()
    return job.run_at is None or job.run_at <= present
