"""Deleting jobs that wait or have failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from ...dialects import MemberState
from ...dialects.database import Database
from ...signals import send_after_commit, task_discarded
from ..checkpoint import Checkpoint
from ..execution import (
    BlockedExecution,
    Execution,
    FailedExecution,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)
from ..retention import Retention
from ..step import Step
from .keys import free_unique_keys, lock_keys
from .removal import remove_executions

#: The states in which a job can be discarded: it is neither running nor finished. In the order in
#: which jobs pass through them: a job that moves on while its row is awaited is found in the next.
STATES: tuple[type[Execution], ...] = (
    WaitingExecution,
    ScheduledExecution,
    BlockedExecution,
    ReadyExecution,
    FailedExecution,
)


def discard(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Delete these of all ``jobs`` and their executions in one transaction; return the count.

    A job that is claimed meanwhile is left alone.
    """
    database = Database.of(jobs.db)
    discarded, admitted = database.in_transaction(lambda: _discard(database, jobs, job_ids))
    if admitted:
        database.ring_after_commit([])
    return discarded


def _discard(database: Database, jobs: QuerySet[Any], job_ids: Sequence[int]) -> tuple[int, int]:
    """Return how many jobs were deleted, and how many others were admitted by it."""
    using = database.alias
    (keys, _, members), unique = lock_keys(database, jobs, job_ids)
    found = [row.pk for row in remove_executions(database, STATES, job_ids, keys)]
    free_unique_keys(database, unique, found)
    jobs.filter(pk__in=found)._raw_delete(using)
    Checkpoint.objects.using(using).filter(pk__in=found)._raw_delete(using)
    Step.objects.using(using).filter(job_id__in=found)._raw_delete(using)
    Retention.objects.using(using).filter(pk__in=found)._raw_delete(using)
    admitted = database.admit(keys)
    database.end_members({pk: MemberState.DISCARDED for pk in members if pk in found})
    if found:
        task_ids = [str(job_id) for job_id in found]
        send_after_commit(task_discarded, jobs.model, using, task_ids=task_ids)
    return len(found), admitted
