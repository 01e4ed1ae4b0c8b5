"""The recurring tasks that are due next, and how their last runs have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections
from django.db.models import Case, OuterRef, Subquery, When

from ..listings.damage import ERRORS, is_damage
from ..listings.recurring import outlook_of
from ..listings.statement import Part, rows_of, stored_instant
from ..models import FailedExecution, Job, RecurringExecution, RecurringTask
from .busy import Moment
from .scope import Scope

#: Most recurring tasks that are looked at, and that are shown.
LOOKED_AT, MOST = 500, 5
FINISHED, FAILED, NOT_ENDED = "finished", "failed", "not ended"


@dataclass(frozen=True)
class LastRun:
    """The last run of a recurring task that was enqueued."""

    at: datetime | None = None
    job_id: int | None = None
    #: How its job has ended; nothing if that is gone.
    ending: str = ""


@dataclass(frozen=True)
class NextRun:
    """The next run of a recurring task."""

    key: str
    task: str
    at: datetime
    last: LastRun


def next_runs(scope: Scope, moment: Moment) -> list[NextRun]:
    """Return the runs that come first: two queries, one if there are none."""
    ahead = [(run, row) for row in _rows(scope) for run in _runs(row, moment)]
    ahead.sort(key=lambda each: (each[0], str(each[1].key)))
    first = ahead[:MOST]
    last = _last_runs(scope.using, [str(row.key) for _, row in first])
    return [
        NextRun(str(row.key), str(row.task_path), run, last.get(row.key, LastRun()))
        for run, row in first
    ]


def _runs(row: RecurringTask, moment: Moment) -> list[datetime]:
    # One that is past is made up for, or was, which would take another query to tell.
    runs = outlook_of(row, None, moment.present, 1).next_runs
    return [run for run in runs if run > moment.present]


def _rows(scope: Scope) -> list[Any]:
    rows = RecurringTask.objects.using(scope.using).filter(enabled=True).order_by("pk")
    if scope.queue:
        rows = rows.filter(queue_name=scope.queue)
    if scope.task:
        rows = rows.filter(task_path=scope.task)
    try:
        return list(rows.defer("arguments", "description")[:LOOKED_AT])
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []


def _last_runs(using: str, keys: Sequence[str]) -> dict[str, LastRun]:
    runs = RecurringExecution.objects.using(using).order_by("-run_at")
    ended = Case(When(finished_at__isnull=False, then=1), default=0)
    jobs = Job.objects.using(using).filter(pk=OuterRef("job_id")).annotate(ended=ended)
    failed = FailedExecution.objects.using(using).filter(pk=OuterRef("job_id"))
    # PostgreSQL may read all failed jobs for an EXISTS among the columns, but not for a LIMIT.
    runs = runs.annotate(
        ended=Subquery(jobs.values("ended")[:1]), failed=Subquery(failed.values("pk")[:1])
    )
    columns = ("task_key", "run_at", "job_id", "ended", "failed")
    text = f"SELECT {', '.join(columns)} FROM {{rows}}"
    # A key each: a server may read all runs to find the last ones of several keys.
    parts: list[Part] = [(text, runs.filter(task_key=key).values(*columns)[:1]) for key in keys]
    try:
        found = rows_of(using, parts) if parts else []
        return {
            key: LastRun(stored_instant(connections[using], at), job_id, _ending(ended, failed))
            for key, at, job_id, ended, failed in found
        }
    except ERRORS as error:
        if not is_damage(error):
            raise
        return {}


def _ending(ended: Any, failed: Any) -> str:
    """Return how a job has ended; ``ended`` is ``None`` for one that is gone."""
    if ended is None:
        return ""
    if failed is not None:
        return FAILED
    return FINISHED if ended else NOT_ENDED
