"""The recurring tasks of a database, with their last and next runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from ..dialects.database import Database
from ..models import RecurringExecution, RecurringTask
from .damage import read_each
from .run_outlook import Outlook, outlook_of

#: Most recurring tasks that are listed.
MOST = 2_000


@dataclass(frozen=True)
class ListedSchedule:
    """A recurring task, as it is at one moment."""

    row: RecurringTask
    last_run: datetime | None
    outlook: Outlook

    @property
    def key(self) -> str:
        return str(self.row.key)

    @property
    def state(self) -> str:
        if not self.row.enabled:
            return "disabled"
        return "finished" if self.outlook.is_finished else "enabled"


def listed_schedules(using: str, next_runs: int, key: str | None = None) -> list[ListedSchedule]:
    """Return the recurring tasks of a database, or the one with a ``key``, each with at most so
    many of its next runs."""
    rows: Any = RecurringTask.objects.using(using).order_by("pk")
    if key is not None:
        rows = rows.filter(pk=key)
    keys = list(rows.values_list("pk", flat=True)[:MOST])
    found = read_each(rows, keys)
    last = last_runs(using, rows.filter(pk__in=keys))
    present = Database.of(using).current_time()
    known = [(row, last.get(row.pk)) for row in map(found.get, keys) if row is not None]
    return [
        ListedSchedule(row, run_at, outlook_of(row, run_at, present, next_runs))
        for row, run_at in known
    ]


def last_runs(using: str, tasks: QuerySet[Any]) -> dict[str, datetime]:
    """Return when the last run of each of these tasks was due that has one, by key."""
    return {key: run.run_at for key, run in last_executions(using, tasks).items()}


def last_executions(using: str, tasks: QuerySet[Any]) -> dict[str, RecurringExecution]:
    """Return the last run of each of these tasks that has one, by key."""
    runs = RecurringExecution.objects.using(using)
    # By both columns of the index: MariaDB would read all runs of a task to sort them by one.
    ordered = runs.filter(task_key=OuterRef("key")).order_by("-task_key", "-run_at")
    latest = ordered.values("pk")[:1]
    ids = [pk for pk in tasks.values_list(Subquery(latest), flat=True) if pk is not None]
    return {run.task_key: run for run in runs.filter(pk__in=ids)}
