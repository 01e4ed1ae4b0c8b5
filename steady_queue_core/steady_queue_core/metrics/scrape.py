"""One look at a database for all metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.db import Error

from .. import __version__
from ..configured_backends import backends_on, queue_databases
from ..dialects import portable
from ..dialects.database import Database
from ..errors import SteadyQueueError
from ..listings.damage import read_each
from ..listings.processes import ListedProcess, listed_processes
from ..listings.queues import ListedQueue, listed_queues
from ..listings.recurring import expected_after, listed_schedules
from ..logging import about, get_logger
from ..models import ScheduledExecution, Statistic
from ..statistics.tally import ALL_TIME, Tally

logger = get_logger("steady_queue.metrics")

#: Most pairs of queue and task that have counters; the others are counted together by their queues,
#: as long as these are not as many again.
MOST_SERIES = 5_000


class Schedule(NamedTuple):
    """The runs of a recurring task, as Unix times."""

    key: str
    last_run: float | None
    next_run: float | None


@dataclass(frozen=True)
class Scrape:
    """What there is in one database at one moment."""

    versions: dict[str, str]
    queues: list[ListedQueue]
    registered: list[ListedProcess]
    schedules: list[Schedule]
    scheduler_lag: float
    dispatch_lag: float
    #: By queue and task.
    totals: dict[tuple[str, str], Tally]

    @classmethod
    def of(cls, using: str) -> Scrape:
        """Look at a database. Raises ``django.db.Error`` and ``SteadyQueueError``."""
        database = Database.of(using)
        present = database.current_time()
        registered = listed_processes(using)
        schedules = listed_schedules(using, next_runs=1)
        expected = [expected_after(each.row, each.last_run) for each in schedules]
        overdue = [(present - run).total_seconds() for run in expected if run is not None]
        info = database.dialect.info
        return cls(
            versions={"version": __version__, "dialect": info.name},
            queues=listed_queues(using, registered),
            registered=registered,
            schedules=[
                Schedule(
                    each.key,
                    _timestamp(each.last_run),
                    _timestamp(next(iter(each.outlook.next_runs), None)),
                )
                for each in schedules
            ],
            scheduler_lag=max(0.0, *overdue, 0.0),
            dispatch_lag=_dispatch_lag(using, present),
            totals=_totals(using),
        )

    @cached_property
    def processes(self) -> Counter[tuple[str, str]]:
        """How many processes there are, by kind and state."""
        return Counter(
            (str(each.row.kind), "live" if each.is_live else "stale") for each in self.registered
        )

    @property
    def threads(self) -> int:
        """Threads of the live workers."""
        return sum(each.threads for each in self.registered if each.is_live)

    @property
    def running(self) -> int:
        """Jobs that are claimed by live workers."""
        return sum(each.running for each in self.registered if each.is_live)

    @cached_property
    def totals_by_queue(self) -> dict[str, Tally]:
        """The totals by queue."""
        found: dict[str, Tally] = {}
        for (queue, _), tally in self.totals.items():
            found.setdefault(queue, Tally()).add(tally)
        return found


def scrapes() -> Iterator[tuple[str, Scrape | None]]:
    """Look at each database of the queue; yield the aliases of its backends, and ``None`` for one
    that does not answer, or is not ready."""
    for using in queue_databases():
        name = ",".join(sorted(backends_on(using)))
        try:
            yield name, Scrape.of(using)
        except (Error, SteadyQueueError) as error:
            logger.warning(
                "There are no metrics of the database %s: %s",
                using,
                error,
                extra=about("metrics.unavailable", database=using),
            )
            yield name, None


def _dispatch_lag(using: str, present: datetime) -> float:
    rows = ScheduledExecution.objects.using(using)
    first = list(rows.order_by("due_at").values_list("pk", flat=True)[:1])
    for row in read_each(rows, first).values():
        if row is not None and row.due_at is not None:
            late = present - portable.aware(row.due_at)
            return max(0.0, late.total_seconds())
    return 0.0


def _totals(using: str) -> dict[tuple[str, str], Tally]:
    found: dict[tuple[str, str], Tally] = {}
    rows = Statistic.objects.using(using).filter(span=ALL_TIME, minute=0)
    # In the order of their key, so that the same ones are told apart in each scrape.
    for row in rows.order_by("queue_name", "task_path", "writer").iterator():
        names = str(row.queue_name), str(row.task_path)
        if names not in found and len(found) >= MOST_SERIES:
            # With their queue, whose own counters must not fall when other pairs come before these.
            names = names[0] if len(found) < 2 * MOST_SERIES else "", ""
        found.setdefault(names, Tally()).add(Tally.of(row))
    return found


def _timestamp(instant: datetime | None) -> float | None:
    return None if instant is None else portable.aware(instant).timestamp()
