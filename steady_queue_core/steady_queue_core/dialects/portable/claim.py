"""Claiming ready jobs, in plain ORM."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet

from ..queue_selector import QueueSelector
from ..records import EXECUTION_COLUMNS, JOB_COLUMNS, ClaimedJob, ProcessIdentity
from .clock import aware
from .listing import excluded_ranges, paused_queues
from .models import model, moved, rows_of
from .own import list_queues, lock_rows, present_time, transaction
from .tokens import next_token


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    """Lock ready rows in order, move them to claimed, and load their jobs."""
    using = connection.alias
    ready = model("ReadyExecution").objects.using(using)
    if limit <= 0 or not ready.exists():
        return []
    with transaction(connection):
        registered = model("Process").objects.using(using)
        if not registered.filter(pk=process.id, name=process.name).exists():
            return []
        picked: list[Any] = []
        for scope in _scopes(connection, selector):
            rows = scope.order_by("rank", "turn")[: limit - len(picked)]
            picked += lock_rows(connection, rows, wait=False)
            if len(picked) >= limit:
                break
        if not picked:
            return []
        ready.filter(pk__in=[row.pk for row in picked]).delete()
        wanted = model("Job").objects.using(using).filter(pk__in=[row.pk for row in picked])
        # Locked, so that a job is seen even if it is newer than this transaction's snapshot.
        jobs = {job.pk: job for job in lock_rows(connection, wanted, wait=True)}
        claims = model("ClaimedExecution").objects.using(using)
        running = set(claims.filter(pk__in=jobs).values_list("pk", flat=True))
        present = present_time(connection)
        # A stray ready row, whose job is gone, has ended or is running, is deleted for good.
        taken = [
            moved("ClaimedExecution", row, next_token(row.token), present, process_id=process.id)
            for row in picked
            if row.pk in jobs and jobs[row.pk].finished_at is None and row.pk not in running
        ]
        claims.bulk_create(taken)
    return [claimed_job(row, jobs[row.pk], present) for row in taken]


def claimed_job(execution: Any, job: Any, claimed_at: datetime) -> ClaimedJob:
    """Return a claim from the rows of its execution and its job."""
    row = {name: getattr(execution, name) for name in EXECUTION_COLUMNS}
    row |= {name: getattr(job, name) for name in JOB_COLUMNS}
    return ClaimedJob.from_row(row, claimed_at, lambda value, default: aware(value))


def _scopes(connection: BaseDatabaseWrapper, selector: QueueSelector) -> list[QuerySet[Any]]:
    """Return querysets of the ready rows to claim, in order."""
    ready = rows_of(connection, "ReadyExecution")
    if selector.takes_all:
        pauses = rows_of(connection, "Pause")
        served = ready.exclude(queue_name__in=pauses.values("queue_name"))
        for low, end in excluded_ranges(selector):
            within = Q(queue_name__gte=low)
            served = served.exclude(within if end is None else within & Q(queue_name__lt=end))
        return [served]
    names = selector.matching(
        lambda prefix: list_queues(connection, prefix), paused_queues(connection)
    )
    return [ready.filter(queue_name=name) for name in names]
