"""How many jobs there are in each state and queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F

from ..dialects import portable
from ..listings.counts import CAP, Alike, BoundedCount, count_each
from ..listings.states import EXECUTIONS
from ..models import ReadyExecution, RecurringTask, ScheduledExecution

#: Ready jobs that are counted of all queues together: many long queues are counted less far each.
OF_QUEUES = 30_000


@dataclass(frozen=True)
class Lengths:
    """Counts up to a limit, each with the earliest instant of what was counted."""

    states: dict[str, BoundedCount]
    #: Scheduled jobs that should be ready by now, by their due times.
    overdue: BoundedCount
    #: Recurring tasks that are enabled.
    schedules: BoundedCount
    #: Ready jobs by queue.
    queues: dict[str, BoundedCount] = field(default_factory=dict)

    @classmethod
    def of_nothing(cls) -> Lengths:
        """Return what there is where nothing is read."""
        nothing = BoundedCount(0)
        return cls(dict.fromkeys(EXECUTIONS, nothing), overdue=nothing, schedules=nothing)

    @classmethod
    def of(cls, using: str, queues: Sequence[str], late: datetime) -> Lengths:
        """Count in a database, by one query; jobs that were due before ``late`` are overdue."""
        ready = ReadyExecution.objects.using(using).order_by("rank", "turn")
        overdue = ScheduledExecution.objects.using(using).filter(due_at__lt=portable.storable(late))
        selections = [
            *(model._default_manager.using(using).order_by() for model in EXECUTIONS.values()),
            overdue.order_by("due_at", "rank", "job"),
            RecurringTask.objects.using(using).filter(enabled=True).order_by(),
        ]
        of_each = min(CAP, OF_QUEUES // max(1, len(queues)))
        by_queue = Alike(lambda name: _dated(ready.filter(queue_name=name)), queues, of_each)
        found = count_each(using, [*map(_dated, selections)], "moment", alike=by_queue)
        number = len(EXECUTIONS)
        return cls(
            states=dict(zip(EXECUTIONS, found, strict=False)),
            overdue=found[number],
            schedules=found[number + 1],
            queues=dict(zip(queues, found[number + 2 :], strict=True)),
        )


def _dated(rows: Any) -> Any:
    by_due_time = "due_at" in rows.query.order_by
    return rows.annotate(moment=F("due_at" if by_due_time else "created_at"))
