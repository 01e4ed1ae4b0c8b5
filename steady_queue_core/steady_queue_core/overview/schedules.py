"""The recurring tasks that are due next, and how their last runs have ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Subquery

from ..listings.damage import ERRORS, is_damage
from ..listings.run_outlook import outlook_of
from ..models import FailedExecution, Job, RecurringExecution, RecurringTask
from .registered import Moment
from .scope import Scope

#: Most recurring tasks that are looked at, and that are shown.
LOOKED_AT, MOST = 500, 5


@dataclass(frozen=True)
class NextRun:
    """A recurring task with its next run and its last one."""

    key: str
    task: str
    next_run: datetime
    last_run: datetime | None
    #: The job of the last run, and how it has ended: ``finished``, ``failed``, ``not ended``, or
    #: nothing if it is gone.
    last_job: int | None
    ending: str


def next_runs(scope: Scope, moment: Moment) -> list[NextRun]:
    """Return the runs that come first: one query."""
    found = []
    for row in _rows(scope):
        outlook = outlook_of(row, row.last_run, moment.present, 1)
        for run in outlook.next_runs:
            found.append(
                NextRun(str(row.key), str(row.task_path), run, row.last_run, row.job, _ending(row))
            )
    return sorted(found, key=lambda each: each.next_run)[:MOST]


def _rows(scope: Scope) -> list[Any]:
    using = scope.using
    rows: Any = RecurringTask.objects.using(using).filter(enabled=True).order_by("pk")
    if scope.queue:
        rows = rows.filter(queue_name=scope.queue)
    if scope.task:
        rows = rows.filter(task_path=scope.task)
    runs = RecurringExecution.objects.using(using).filter(task_key=OuterRef("key"))
    latest = runs.order_by("-run_at")
    rows = rows.defer("arguments", "description").annotate(
        last_run=Subquery(latest.values("run_at")[:1]),
        job=Subquery(latest.values("job_id")[:1]),
    )
    job = OuterRef("job")
    jobs = Job.objects.using(using).filter(pk=job)
    rows = rows.annotate(
        is_there=Exists(jobs),
        has_ended=Exists(jobs.filter(finished_at__isnull=False)),
        has_failed=Exists(FailedExecution.objects.using(using).filter(pk=job)),
    )
    try:
        return list(rows[:LOOKED_AT])
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []


def _ending(row: Any) -> str:
    if not row.is_there:
        return ""
    if row.has_failed:
        return "failed"
    return "finished" if row.has_ended else "not ended"
