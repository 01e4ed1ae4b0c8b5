"""Deleting jobs that wait or have failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from ...dialects import MemberState
from ...signals import task_discarded
from ..checkpoint import Checkpoint
from ..execution import WAITING, Execution, FailedExecution
from ..retention import Retention
from ..step import Step
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


def _delete(jobs: QuerySet[Any], executions: Sequence[Execution]) -> None:
    """Delete jobs, and what is stored beside them."""
    using, found = jobs.db, ids_of(executions)
    jobs._raw_delete(using)
    Checkpoint.objects.using(using).filter(pk__in=found)._raw_delete(using)
    Step.objects.using(using).filter(job_id__in=found)._raw_delete(using)
    Retention.objects.using(using).filter(pk__in=found)._raw_delete(using)
