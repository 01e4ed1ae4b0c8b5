"""What runs and is blocked in each queue and process, what runs for longest, which queues are
paused, which processes are registered, and what time it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import OuterRef, Subquery

from ..dialects import portable
from ..dialects.database import Database
from ..doctor.environment import host_time
from ..doctor.patient import marked
from ..listings.counts import CAP
from ..listings.damage import suppress_damage
from ..listings.processes import ListedProcess, listed, read_processes
from ..listings.statement import Part, rows_of, stored_instant
from ..models import BlockedExecution, ClaimedExecution, Job, Pause
from .scope import Scope
from .total import Total

#: So many of the jobs that run for longest are shown.
MOST_LONGEST = 5
#: Fewer attempts tell nothing of how long the next one takes.
LEAST = 20


class Moment(NamedTuple):
    """The database's time, and that of this host before it was asked for and after."""

    present: datetime
    before: datetime
    after: datetime

    @property
    def minute(self) -> int:
        """Minutes since 1970, by the database's clock."""
        return int(self.present.timestamp() // 60)


def registered(
    using: str, running: Mapping[int, int], earlier: Moment | None
) -> tuple[Moment, list[ListedProcess]]:
    """Return the time and the processes of a database, by one query; without processes it is
    ``earlier``. ``running`` are their claimed jobs."""
    before = host_time()
    rows = read_processes(using)
    after = host_time()
    if rows:
        moment = Moment(portable.aware(rows[0].present), before, after)
    else:
        moment = earlier or Moment(Database.of(using).current_time(), before, host_time())
    return moment, marked(listed(using, rows, running))


RUNNING, BLOCKED, PAUSED, LONGEST, PRESENT = range(5)


class Claim(NamedTuple):
    """A job that runs."""

    job_id: int
    task: str
    queue: str
    process_id: int
    since: datetime


@dataclass
class Busy:
    """Counts of as many rows of each state as are counted."""

    #: Claimed jobs by process, and by queue.
    by_process: Counter[int] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    #: Since when queues are paused; ``None``: not known.
    paused: dict[str, datetime | None] = field(default_factory=dict)
    #: The claimed jobs that were claimed first, of the scope and of all, in this order.
    longest: list[Claim] = field(default_factory=list)
    #: Whether these are all claimed, and all blocked jobs.
    all_running: bool = True
    all_blocked: bool = True
    #: When it was; ``None``: not known.
    moment: Moment | None = None

    @classmethod
    def of(cls, scope: Scope) -> Busy:
        """Look at a database: one query."""
        found, present = cls(), None
        before = host_time()
        rows = _rows(scope)
        after = host_time()
        for row in rows:
            if row[0] == PRESENT:
                present = _instant(scope.using, row[4])
            else:
                found._add(scope.using, *row)
        if present is not None:
            found.moment = Moment(portable.aware(present), before, after)
        found.longest = sorted({*found.longest}, key=lambda each: (each.since, each.job_id))
        found.all_running = found.running.total() <= CAP
        found.all_blocked = found.blocked.total() <= CAP
        return found

    def _add(
        self, using: str, what: int, process: Any, queue: Any, number: int, at: Any, task: Any
    ) -> None:
        if not isinstance(queue, str):
            return
        if what == RUNNING:
            self.by_process[process] += number
            self.running[queue] += number
        elif what == BLOCKED:
            self.blocked[queue] += number
        elif what == PAUSED:
            self.paused[queue] = _instant(using, at)
        elif (since := _instant(using, at)) is not None and isinstance(task, str):
            self.longest.append(Claim(number, task, queue, process, portable.aware(since)))


def _rows(scope: Scope) -> list[tuple[Any, ...]]:
    using = scope.using
    claims = ClaimedExecution.objects.using(using).order_by()
    blocked = BlockedExecution.objects.using(using).order_by()
    pauses = Pause.objects.using(using).order_by("queue_name")
    parts: list[Part] = [
        (
            f"SELECT {RUNNING}, process_id, queue_name, COUNT(*), MIN(created_at), '' "
            "FROM {rows} GROUP BY process_id, queue_name",
            claims.values("process_id", "queue_name", "created_at")[: CAP + 1],
        ),
        (
            f"SELECT {BLOCKED}, 0, queue_name, COUNT(*), MIN(created_at), '' FROM {{rows}} "
            "GROUP BY queue_name",
            blocked.values("queue_name", "created_at")[: CAP + 1],
        ),
        (
            f"SELECT {PAUSED}, 0, queue_name, 1, created_at, '' FROM {{rows}}",
            pauses.values("queue_name", "created_at")[: CAP + 1],
        ),
        (f"SELECT {PRESENT}, 0, '', 1, {{value}}, ''", Database.of(using).now()),
        *_longest(scope, claims),
    ]
    with suppress_damage():
        return rows_of(using, parts)
    return []


def _longest(scope: Scope, claims: Any) -> Iterator[Part]:
    text = f"SELECT {LONGEST}, process_id, queue_name, job_id, created_at, task FROM {{rows}}"
    paths = Job.objects.using(scope.using).filter(pk=OuterRef("pk")).values("task_path")
    rows = claims.annotate(task=Subquery(paths)).order_by("created_at", "pk")
    rows = rows.values("process_id", "queue_name", "job_id", "created_at", "task")
    yield text, rows[:MOST_LONGEST]
    if scope.is_narrow:
        given = {"queue_name": scope.queue, "task": scope.task}
        rows = rows.filter(**{name: each for name, each in given.items() if each})
        yield text, rows[:MOST_LONGEST]


def _instant(using: str, value: Any) -> datetime | None:
    with suppress_damage():
        return stored_instant(connections[using], value)
    return None


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
    claims: Iterable[Claim],
    moment: Moment,
    processes: Iterable[ListedProcess],
    by_task: Mapping[str, Total],
) -> list[LongRun]:
    """Return what is known of these jobs."""
    known = {each.pk: each for each in processes}
    found = []
    for each in claims:
        since = max(timedelta(0), moment.present - each.since)
        times = _times_usual(since, by_task.get(each.task))
        process = known.get(each.process_id)
        found.append(LongRun(each.job_id, each.task, each.queue, since, process, times))
    return found


def _times_usual(since: timedelta, total: Total | None) -> float | None:
    if total is None or total.ended + total.retried < LEAST:
        return None
    usual = total.run(0.95)
    return since.total_seconds() * 1000 / usual if usual else None
