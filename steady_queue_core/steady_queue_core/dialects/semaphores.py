"""Locking the semaphores of jobs that are enqueued, before any of these is inserted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from .batches import parts
from .operations import Operations
from .portable.models import model
from .portable.permits import recount
from .records import NewJob


def lock_semaphores(
    connection: BaseDatabaseWrapper, dialect: Operations, jobs: Sequence[NewJob]
) -> None:
    """Lock the semaphores of ``jobs``, creating those that are missing, in the order of their keys,
    and admit who waits: locked statement by statement, two such enqueues would deadlock."""
    if not any(job.limit for job in jobs):
        return
    limits = limits_by_key(jobs, dialect.current_time(connection))
    rows = [model("Semaphore")(key=key, value=0, limit=to) for key, to in limits.items()]
    for some in parts(rows):
        dialect.upsert(connection, some, ["key"], ["limit"])
    recount(connection, limits)
    dialect.admit(connection, list(limits))


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
