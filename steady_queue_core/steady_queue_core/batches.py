"""Storing many jobs in statements of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from .dialects import Dialect, EnqueuedJob, NewJob

#: Most jobs of one statement, and about as much text.
MOST_JOBS, MOST_TEXT = 1_000, 2**22


def enqueue_in_batches(
    connection: BaseDatabaseWrapper, dialect: Dialect, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    """Insert ``jobs``, all or none; return what became of them, in their order."""
    batches = list(_batches(jobs))
    if len(batches) == 1:
        return dialect.enqueue(connection, jobs)
    with dialect.transaction(connection):
        _lock_semaphores(connection, dialect, jobs)
        return [stored for batch in batches for stored in dialect.enqueue(connection, batch)]


def _lock_semaphores(
    connection: BaseDatabaseWrapper, dialect: Dialect, jobs: Sequence[NewJob]
) -> None:
    """Create the semaphores that are not there, and lock all: in the order of their keys, not batch
    by batch. Two such enqueues would wait for each other."""
    from .models import Semaphore

    if not any(job.limit for job in jobs):
        return
    present = dialect.current_time(connection)
    # The limit is that of the job that was enqueued last; one of later does not count yet.
    limits = {job.limit.key: job.limit.to for job in jobs if job.limit and _is_due(job, present)}
    semaphores = [Semaphore(key=key, value=0, limit=limits[key]) for key in sorted(limits)]
    for start in range(0, len(semaphores), MOST_JOBS):
        some = semaphores[start : start + MOST_JOBS]
        dialect.upsert(connection, some, ["key"], ["limit"])
    # And have their values worked out.
    dialect.admit(connection, sorted(limits))


def _is_due(job: NewJob, present: datetime) -> bool:
    if job.delay is not None:
        return job.delay <= timedelta()
    return job.run_at is None or job.run_at <= present


def _batches(jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
    batch: list[NewJob] = []
    text = 0
    for job in jobs:
        if batch and (len(batch) >= MOST_JOBS or text + len(job.arguments) > MOST_TEXT):
            yield batch
            batch, text = [], 0
        batch.append(job)
        text += len(job.arguments)
    yield batch
