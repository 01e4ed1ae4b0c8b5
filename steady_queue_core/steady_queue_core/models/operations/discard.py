"""Deleting jobs that wait or have failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from ...dialects import MemberState
from ...signals import task_discarded
from ..execution import WAITING, Execution, FailedExecution
from ..retention import Retention
from .rows import delete_jobs
from .transition import Transition, ids_of

#: The states in which a job can be discarded: it is neither running nor finished.
STATES: tuple[type[Execution], ...] = (*WAITING, FailedExecution)


def discard(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Delete these of all ``jobs`` and their executions in one transaction; return the count.

    A job that is claimed meanwhile is left alone.
    """
    return Transition.perform(
        jobs,
        job_ids,
        lambda act: act.end(STATES, MemberState.DISCARDED, _delete, task_discarded),
    )


def _delete(act: Transition, executions: Sequence[Execution]) -> None:
    using, found = act.database.alias, ids_of(executions)
    delete_jobs(act.jobs, found)
    Retention.objects.using(using).filter(pk__in=found)._raw_delete(using)
