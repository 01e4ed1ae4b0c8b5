"""Cancelling jobs: those that wait end at once, those that run are asked to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import OperationalError
from django.db.models import F, QuerySet

from ...dialects import MemberState
from ...dialects.database import Database
from ...errors import CANCELLED_BEFORE_START, TaskCancelled
from ...features.retention.period import of_failure
from ...fingerprint import fingerprint_of
from ...signals import task_cancelled
from ..execution import WAITING, ClaimedExecution, Execution, FailedExecution
from .rows import write_own_values
from .transition import Transition, ids_of

#: All states in which a job can be cancelled.
STATES: tuple[type[Execution], ...] = (*WAITING, ClaimedExecution)

EXCEPTION = f"{TaskCancelled.__module__}.{TaskCancelled.__qualname__}"
MESSAGE = CANCELLED_BEFORE_START
#: Most earlier errors that are kept.
MOST_EARLIER = 19


def end(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Let those of these jobs that wait fail with ``TaskCancelled``, in one transaction; return
    their number.

    ``jobs`` are all jobs. One that is claimed meanwhile is left alone.
    """
    return Transition.perform(
        jobs,
        job_ids,
        lambda act: act.end(WAITING, MemberState.CANCELLED, _fail, task_cancelled),
    )


def ask(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Ask for the end of those of these jobs that have not ended; return the number of those that
    were not asked before.

    The request is the sign of ``max_attempts``, which every claim reads: no other attempt starts.
    """
    asked = 0
    # One by one: a transaction that holds the row of one job while it awaits another's could
    # deadlock with a worker that settles both.
    for job_id in job_ids:
        asked += jobs.filter(pk=job_id, finished_at=None, max_attempts__gt=0).update(
            max_attempts=-F("max_attempts")
        )
    if asked:
        Database.of(jobs.db).ring_after_commit([])
    return asked


def _fail(act: Transition, executions: Sequence[Any]) -> None:
    jobs = act.jobs.filter(pk__in=ids_of(executions))
    _keep_tokens(jobs, executions)
    _store_failures(jobs, act.database.storable_time())
    # How long those are kept that say so themselves.
    known = jobs.exclude(metadata=None).values_list("pk", "metadata")
    periods = {pk: of_failure(text) for pk, text in known}
    act.database.keep({pk: period for pk, period in periods.items() if period is not None})


def _keep_tokens(jobs: QuerySet[Any], executions: Sequence[Any]) -> None:
    """Store the tokens of ``executions`` in the rows of their jobs, where a retry finds them: a
    claim that was released has used one that the job does not know."""
    known = dict(jobs.values_list("pk", "token"))
    newer = {row.pk: row.token for row in executions if known.get(row.pk) != row.token}
    write_own_values(jobs, "token", newer)


def _store_failures(jobs: QuerySet[Any], present: datetime) -> None:
    FailedExecution.objects.using(jobs.db).bulk_create(
        FailedExecution(
            job_id=pk,
            created_at=present,
            exception_class=EXCEPTION,
            message=MESSAGE,
            fingerprint=None if path is None else fingerprint_of(EXCEPTION, MESSAGE, path),
        )
        for pk, path in _task_paths(jobs).items()
    )
    # Only jobs that wait for another attempt have errors.
    earlier = dict(jobs.exclude(errors=None).values_list("pk", "errors"))
    write_own_values(jobs, "errors", {pk: _appended(text) for pk, text in earlier.items()})
    jobs.filter(pk__in=earlier).update(finished_at=present)
    jobs.filter(finished_at=None).update(errors=_appended(None), finished_at=present)


def _task_paths(jobs: QuerySet[Any]) -> dict[int, str | None]:
    """Return the paths of the tasks of jobs; ``None`` for all of them if one is damaged."""
    try:
        return dict(jobs.values_list("pk", "task_path"))
    except OperationalError as error:
        # SQLite stores any bytes as text, and fails when they are read.
        if "decode to UTF-8" not in str(error):
            raise
        return dict.fromkeys(jobs.values_list("pk", flat=True))


def _appended(errors: str | None) -> str:
    """Return the stored list of a job's errors with this one added."""
    try:
        earlier = json.loads(errors or "[]")
    except (ValueError, RecursionError):
        earlier = []
    kept = earlier[-MOST_EARLIER:] if isinstance(earlier, list) else []
    return json.dumps([*kept, [EXCEPTION, f"{EXCEPTION}: {MESSAGE}\n"]])
