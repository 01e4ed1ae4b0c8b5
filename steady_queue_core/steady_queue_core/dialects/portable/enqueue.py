"""Inserting jobs with their first executions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..records import EnqueuedJob, NewJob
from .clock import storable
from .models import model
from .own import present_time, transaction
from .permits import admit_by, discard_refused


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    """Insert ``jobs``, one by one if the database cannot return the ids of many."""
    using = connection.alias
    jobs_manager = model("Job").objects.using(using)
    with transaction(connection):
        present = present_time(connection)
        due = [None if job.waits else due_at(job, present) for job in jobs]
        rows = [job_row(job, present, later) for job, later in zip(jobs, due, strict=True)]
        if connection.features.can_return_rows_from_bulk_insert:
            rows = jobs_manager.bulk_create(rows)
        else:
            for row in rows:
                row.save(using=using, force_insert=True)
        refused = set[int]()
        if not (jobs and jobs[0].waits):
            _insert_executions(using, jobs, rows, due, present)
            refused = _admit(connection, jobs, rows, due)
    return [EnqueuedJob(None if row.pk in refused else row.pk, present) for row in rows]


#: Clocks of databases may be this coarse: the caller's present time may be that much later.
RESOLUTION = timedelta(milliseconds=1)


def due_at(job: NewJob, present: datetime) -> datetime | None:
    """Return the due time of a future job, or ``None`` if it is due at ``present``."""
    due = present + job.delay if job.delay is not None else job.run_at
    return due if due is not None and due - present >= RESOLUTION else None


def _admit(
    connection: BaseDatabaseWrapper,
    jobs: Sequence[NewJob],
    rows: Sequence[Any],
    due: Sequence[datetime | None],
) -> set[int]:
    """Give new jobs that are due their permits; return the ids of those that were discarded."""
    waiting = [
        (job.limit, row.pk)
        for job, row, later in zip(jobs, rows, due, strict=True)
        if job.limit is not None and later is None
    ]
    admit_by(connection, {limit.key: limit.to for limit, _ in waiting})
    discarding = [job_id for limit, job_id in waiting if limit.discards]
    return set(discard_refused(connection, discarding)) if discarding else set()


def job_row(job: NewJob, present: datetime, later: datetime | None) -> Any:
    """Return the unsaved row of a job; ``later``: when it is due, if that is not now."""
    # A time in the past is kept too: the caller asked for it.
    run_at, limit = later or job.run_at, job.limit
    return model("Job")(
        queue_name=job.queue_name,
        task_path=job.task_path,
        backend_name=job.backend_name,
        rank=job.rank,
        arguments=job.arguments,
        metadata=job.metadata,
        max_attempts=job.max_attempts,
        enqueued_at=storable(present),
        scheduled_at=storable(run_at) if run_at else None,
        concurrency_key=limit and limit.key,
        concurrency_limit=limit and limit.to,
        concurrency_duration=limit and limit.duration,
        concurrency_discards=limit is not None and limit.discards,
    )


def _insert_executions(
    using: str,
    jobs: Sequence[NewJob],
    rows: Sequence[Any],
    due: Sequence[datetime | None],
    present: datetime,
) -> None:
    created_at = storable(present)
    made = [
        execution_row(job, row, later, created_at)
        for job, row, later in zip(jobs, rows, due, strict=True)
    ]
    for name in ("ReadyExecution", "BlockedExecution", "ScheduledExecution"):
        some = [each for each in made if type(each) is model(name)]
        model(name).objects.using(using).bulk_create(some)


def execution_row(job: NewJob, row: Any, later: datetime | None, created_at: datetime) -> Any:
    """Return the unsaved first execution of a job, whose row was saved."""
    common = {
        "job_id": row.pk,
        "queue_name": job.queue_name,
        "rank": job.rank,
        "token": row.token,
        "created_at": created_at,
    }
    limited = {"concurrency_key": row.concurrency_key}
    if later is not None:
        return model("ScheduledExecution")(due_at=storable(later), **common, **limited)
    if job.limit is not None:
        return model("BlockedExecution")(**common, **limited)
    return model("ReadyExecution")(**common)
