"""Inserting jobs with their first executions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from ..records import EnqueuedJob, NewJob
from .clock import current_time, now, storable
from .models import model


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    """Insert ``jobs``, one by one where the database does not tell the ids of many."""
    using = connection.alias
    jobs_manager = model("Job").objects.using(using)
    with atomic(using=using, savepoint=False):
        present = current_time(connection, now(connection))
        rows = [_row(job, present) for job in jobs]
        if connection.features.can_return_rows_from_bulk_insert:
            rows = jobs_manager.bulk_create(rows)
        else:
            for row in rows:
                row.save(using=using, force_insert=True)
        _insert_executions(using, jobs, rows, present)
    return [EnqueuedJob(row.pk, present) for row in rows]


def due_at(job: NewJob, present: datetime) -> datetime | None:
    """Return when ``job`` is due if that is later than ``present``, else ``None``."""
    due = present + job.delay if job.delay is not None else job.run_at
    return due if due is not None and due > present else None


def _row(job: NewJob, present: datetime) -> Any:
    due = due_at(job, present)
    return model("Job")(
        queue_name=job.queue_name,
        task_path=job.task_path,
        backend_name=job.backend_name,
        rank=job.rank,
        arguments=job.arguments,
        max_attempts=job.max_attempts,
        enqueued_at=storable(present),
        scheduled_at=storable(due) if due else None,
    )


def _insert_executions(
    using: str, jobs: Sequence[NewJob], rows: Sequence[Any], present: datetime
) -> None:
    ready, scheduled = [], []
    for job, row in zip(jobs, rows, strict=True):
        common = {
            "job_id": row.pk,
            "queue_name": job.queue_name,
            "rank": job.rank,
            "created_at": storable(present),
        }
        if row.scheduled_at is None:
            ready.append(model("ReadyExecution")(**common))
        else:
            scheduled.append(model("ScheduledExecution")(due_at=row.scheduled_at, **common))
    model("ReadyExecution").objects.using(using).bulk_create(ready)
    model("ScheduledExecution").objects.using(using).bulk_create(scheduled)
