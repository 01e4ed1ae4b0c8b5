"""Storing many jobs in statements of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
        # In the order of all, not of each batch: two such enqueues would wait for each other.
        dialect.admit(connection, sorted({job.limit.key for job in jobs if job.limit is not None}))
        return [stored for batch in batches for stored in dialect.enqueue(connection, batch)]


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
