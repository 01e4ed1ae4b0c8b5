"""The recurring tasks of a database: their last runs, and what is ahead as far as rows tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from ..dialects import portable
from ..dialects.database import Database
from ..models import RecurringExecution, RecurringTask
from ..schedules import policies
from ..schedules.span import Span, policy_for
from ..schedules.stored import span_of
from .damage import read_in_order

#: Most recurring tasks that are listed.
MOST = 2_000


@dataclass(frozen=True)
class Outlook:
    """The next runs of a task; none if it is disabled or its row is unreadable."""

    next_runs: list[datetime] = field(default_factory=list)
    #: Whether there will be none, however long one waits.
    is_finished: bool = False


@dataclass(frozen=True)
class ListedSchedule:
    """A recurring task, as it is at one moment."""

    row: RecurringTask
    #: The record of the last run.
    last: RecurringExecution | None
    outlook: Outlook

    @property
    def key(self) -> str:
        return str(self.row.key)

    @property
    def last_run(self) -> datetime | None:
        """When the last run was due."""
        return None if self.last is None else self.last.run_at

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
    sound, _ = read_in_order(rows, keys)
    return listed(rows.filter(pk__in=keys), sound, next_runs)


def listed(
    tasks: QuerySet[Any], rows: Iterable[RecurringTask], next_runs: int
) -> list[ListedSchedule]:
    """Return what is known of ``rows``, which are those of ``tasks``."""
    last, present = _last_runs(tasks), Database.of(tasks.db).current_time()
    found = []
    for row in rows:
        run = last.get(row.pk)
        outlook = outlook_of(row, None if run is None else run.run_at, present, next_runs)
        found.append(ListedSchedule(row, run, outlook))
    return found


def outlook_of(
    row: RecurringTask, last_run: datetime | None, present: datetime, count: int
) -> Outlook:
    """Return what is ahead of a task, with at most ``count`` runs."""
    try:
        runs = _ahead(row, last_run, present, count)
    except Exception:  # No manual edit of the row may break the page.
        return Outlook()
    return Outlook(runs if row.enabled else [], is_finished=not runs)


def expected_after(
    row: RecurringTask, last_run: datetime | None, *since: datetime
) -> datetime | None:
    """Return the run that follows the last one and ``since``, and may be overdue; ``None`` if there
    is none, or the row is unreadable."""
    try:
        known = [*since, *_known(row, last_run)]
        is_over = not row.enabled or row.runs_left == 0 or not known
        return None if is_over else span_of(row).next_after(max(known))
    except Exception:  # No manual edit of the row may matter.
        return None


def _ahead(
    row: RecurringTask, last_run: datetime | None, present: datetime, count: int
) -> list[datetime]:
    span = span_of(row)
    if row.runs_left is not None:
        count = min(count, row.runs_left)
    found: list[Any] = [span.next_after(present)]
    if found == [None]:
        found = [_outstanding(row, span, last_run, present)]
    while None not in found and len(found) < count:
        found.append(span.next_after(found[-1]))
    return [run for run in found[:count] if run is not None]


def _outstanding(
    row: RecurringTask, span: Span, last_run: datetime | None, present: datetime
) -> datetime | None:
    """Return a run that is past, but waits or would be made up for."""
    if row.overlap == "queue" and row.waiting_at is not None:
        return portable.aware(row.waiting_at)
    known = _known(row, last_run)
    policy = policy_for(span.schedule, policies.from_text(row.catch_up))
    return span.following(policy, max(known), present) if known else None


def _known(row: RecurringTask, last_run: datetime | None) -> list[datetime]:
    """Return the instants up to which no run is missing."""
    known = (last_run, row.active_since)
    return [portable.aware(each) for each in known if each is not None]


def _last_runs(tasks: QuerySet[Any]) -> dict[str, RecurringExecution]:
    """Return the last run of each of these tasks that has one, by key."""
    runs = RecurringExecution.objects.using(tasks.db)
    # By both columns of the index: MariaDB would read all runs of a task to sort them by one.
    ordered = runs.filter(task_key=OuterRef("key")).order_by("-task_key", "-run_at")
    latest = ordered.values("pk")[:1]
    ids = [pk for pk in tasks.values_list(Subquery(latest), flat=True) if pk is not None]
    return {run.task_key: run for run in runs.filter(pk__in=ids)}
