"""Deleting jobs that wait or have failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from ...signals import task_discarded, tell_after_commit
from ..base import queue_database
from ..execution import (
    BlockedExecution,
    Execution,
    FailedExecution,
    ReadyExecution,
    ScheduledExecution,
)
from ..semaphore import Permit, concurrency_keys, lock_semaphores

#: The states that a job can be discarded in: it neither runs nor has it finished. In the order in
#: which jobs pass through them: one that moves on while we wait for its row is found in the next.
STATES: tuple[type[Execution], ...] = (
    ScheduledExecution,
    BlockedExecution,
    ReadyExecution,
    FailedExecution,
)


def discard(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Delete jobs with their executions, in one transaction; return how many.

    A job that is claimed meanwhile is left alone: who locks its execution first has it.
    """
    using = jobs.db
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        keys = concurrency_keys(jobs.filter(pk__in=job_ids))
        found: list[int] = []
        for state in STATES:
            if state is BlockedExecution:
                # After what is scheduled, as who dispatches; before all that others move under it.
                lock_semaphores(connection, dialect, keys)
            rows = state._default_manager.using(using).filter(pk__in=job_ids).order_by("pk")
            held = [row.pk for row in dialect.lock_rows(connection, rows, wait=True)]
            if held:
                rows.filter(pk__in=held)._raw_delete(using)
                found += held
        Permit.objects.using(using).filter(pk__in=found)._raw_delete(using)
        jobs.filter(pk__in=found)._raw_delete(using)
        admitted = dialect.admit(connection, keys)
        if found:
            task_ids = [str(job_id) for job_id in found]
            tell_after_commit(task_discarded, jobs.model, using, task_ids=task_ids)
    if admitted:
        dialect.ring_after_commit(connection, [])
    return len(found)
