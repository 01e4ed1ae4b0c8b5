"""The states and queues, each with what waits and runs there, and how fast that changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import F

from ..dialects import portable
from ..listings.counts import CAP, Alike, BoundedCount, count_each
from ..listings.processes import ListedProcess
from ..listings.queues import ListedQueue, named_by_workers, queues_of
from ..listings.states import EXECUTIONS
from ..models import ReadyExecution, RecurringTask, ScheduledExecution
from .busy import Busy, Moment
from .history import History
from .scope import LATELY, RECENT
from .total import Total

#: Ready jobs that are counted of all queues together: many long queues are counted less far each.
OF_QUEUES = 30_000
#: Most queues that are counted.
MOST = 200
#: What fits on a page.
MOST_SHOWN = 12


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


@dataclass(frozen=True)
class QueueLine:
    """A queue, now and in the last minutes."""

    listed: ListedQueue
    blocked: BoundedCount
    #: What has become of its jobs: in the window, and in the last ten minutes.
    window: Total
    lately: Total
    #: Ended jobs in each minute of the last hour.
    spark: Sequence[int]
    #: Ready jobs some minutes ago; ``None``: not known.
    earlier: tuple[int, int] | None

    @property
    def name(self) -> str:
        return self.listed.name

    @property
    def running(self) -> BoundedCount:
        return self.listed.counts["running"]

    @property
    def out_rate(self) -> float:
        """How many jobs ended in a minute, on average of ten."""
        return self.lately.ended / LATELY

    @cached_property
    def in_rate(self) -> float | None:
        """How many jobs became ready in a minute: those that were begun, and by how many more wait
        now; ``None`` if that is not known."""
        if self.earlier is None or not self.listed.ready.exact:
            return None
        minutes, ready = self.earlier
        gained = (self.listed.ready.number - ready) / max(1, minutes)
        return max(0.0, self.lately.enqueued / LATELY + gained)

    @property
    def time_to_empty(self) -> timedelta | None:
        """How long until no job is ready, if all goes on like this; ``None``: for ever, or not
        known."""
        if not self.listed.ready.number or self.in_rate is None or self.out_rate <= self.in_rate:
            return None
        minutes = self.listed.ready.number / (self.out_rate - self.in_rate)
        return timedelta(minutes=min(minutes, 60 * 24 * 3650))


def queue_names(
    listed: Iterable[str],
    busy: Busy,
    processes: Iterable[ListedProcess],
    history: History,
) -> tuple[list[str], int]:
    """Return the names of queues that somebody knows, sorted, those with jobs before others if
    there are too many; and how many are left out."""
    now = {*listed, *busy.running, *busy.blocked, *busy.paused}
    others = {*named_by_workers(processes), *history.by_queue, *history.sparks} - {"", *now}
    found = [*sorted(now), *sorted(others)]
    return sorted(found[:MOST]), len(found[MOST:])


def listed_queues(
    lengths: Lengths, busy: Busy, processes: Sequence[ListedProcess], moment: Moment
) -> list[ListedQueue]:
    """Return the queues as other pages and the doctor see them."""

    def running(name: str) -> dict[str, BoundedCount]:
        return {"running": BoundedCount(busy.running[name], busy.all_running)}

    return queues_of(lengths.queues, busy.paused, running, processes, moment.present)


def queue_lines(queues: Iterable[ListedQueue], busy: Busy, history: History) -> Iterator[QueueLine]:
    """Return the lines of these queues."""
    lately: Mapping[str, Total] = history.lately
    for each in queues:
        yield QueueLine(
            listed=each,
            blocked=BoundedCount(busy.blocked[each.name], busy.all_blocked),
            window=history.by_queue.get(each.name, Total()),
            lately=lately.get(each.name, Total()),
            spark=history.sparks.get(each.name, [0] * RECENT),
            earlier=history.ready_before(each.name),
        )
