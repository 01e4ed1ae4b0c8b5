"""The jobs that have run for longest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import OuterRef, Subquery

from ..dialects import portable
from ..listings.damage import ERRORS, is_damage
from ..listings.processes import ListedProcess
from ..models import ClaimedExecution, Job
from .registered import Moment
from .scope import Scope
from .total import Total

MOST = 5
#: Fewer attempts tell nothing of how long the next one takes.
LEAST = 20


@dataclass(frozen=True)
class LongRun:
    """A job that runs."""

    job_id: int
    task: str
    queue: str
    since: timedelta
    #: Who has claimed it, if that is registered.
    process: ListedProcess | None
    #: So many times as long as 95 % of the task's attempts at most; ``None``: not known.
    times_usual: float | None


def longest_runs(
    scope: Scope, moment: Moment, processes: Sequence[ListedProcess], by_task: Mapping[str, Total]
) -> list[LongRun]:
    """Return the jobs of a scope that were claimed first: one query."""
    known = {each.pk: each for each in processes}
    found = []
    for job_id, process, queue, at, task in _rows(scope):
        if at is None or not isinstance(task, str):
            continue
        since = max(timedelta(0), moment.present - portable.aware(at))
        times = _times_usual(since, by_task.get(task))
        found.append(LongRun(job_id, task, str(queue), since, known.get(process), times))
    return found


def _rows(scope: Scope) -> list[Any]:
    paths = Job.objects.using(scope.using).filter(pk=OuterRef("pk")).values("task_path")
    rows: Any = ClaimedExecution.objects.using(scope.using).annotate(task=Subquery(paths))
    if scope.queue:
        rows = rows.filter(queue_name=scope.queue)
    if scope.task:
        rows = rows.filter(task=scope.task)
    rows = rows.order_by("created_at", "pk")
    try:
        return list(rows.values_list("pk", "process_id", "queue_name", "created_at", "task")[:MOST])
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []


def _times_usual(since: timedelta, total: Total | None) -> float | None:
    if total is None or total.ended + total.retried < LEAST:
        return None
    usual = total.run(0.95)
    return since.total_seconds() * 1000 / usual if usual else None
