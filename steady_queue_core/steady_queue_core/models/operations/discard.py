"""Deleting jobs that wait or have failed."""

from __future__ import annotations

from collections.abc import Sequence

from ...signals import send_after_commit, task_discarded
from ..base import queue_database
from ..execution import (
    BlockedExecution,
    Execution,
    FailedExecution,
    ReadyExecution,
    ScheduledExecution,
)
from ..job import Job
from ..semaphore import Permit, keys_of, lock_semaphores

#: The states that a job can be discarded in: it neither runs nor has it finished. In the order in
#: which jobs pass through them: one that moves on while we wait for its row is found in the next.
STATES: tuple[type[Execution], ...] = (
    ScheduledExecution,
    BlockedExecution,
    ReadyExecution,
    FailedExecution,
)


def discard(using: str, job_ids: Sequence[int]) -> int:
    """Delete jobs with their executions, in one transaction; return how many.

    A job that is claimed meanwhile is left alone: who locks its execution first has it.
    """
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        keys = keys_of(using, job_ids)
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
        Job.objects.using(using).filter(pk__in=found)._raw_delete(using)
        admitted = dialect.admit(connection, keys)
        if found:
            task_ids = [str(job_id) for job_id in found]
            send_after_commit(task_discarded, Job, using, task_ids=task_ids)
    if admitted:
        dialect.ring_after_commit(connection, [])
    return len(found)
