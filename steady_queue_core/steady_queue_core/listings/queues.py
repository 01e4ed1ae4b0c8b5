"""The queues of a database, with what waits and runs in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from ..dialects import is_storable, portable
from ..dialects.database import Database
from ..models import FailedExecution, Job, Pause, ReadyExecution
from ..models.execution import Execution
from .counts import CAP, BoundedCount, count_each
from .damage import read_each, readable, suppress_damage
from .processes import ListedProcess, LiveWorkers
from .statement import rows_of
from .states import EXECUTIONS
from .visibility import VisibleJobs

#: Queues that one statement counts.
MOST_AT_ONCE = 50
#: Jobs that one statement looks up.
MOST_LOOKED_UP = 1_000
#: Most queues without jobs that are listed because workers name them.
MOST_NAMED = 1_000
#: The states other than ready. A failed execution does not have the name of its queue.
STATES = {
    name: EXECUTIONS[name] for name in ("running", "scheduled", "blocked", "waiting", "failed")
}


@dataclass(frozen=True)
class ListedQueue:
    """A queue, as it is at one moment."""

    name: str
    is_paused: bool
    paused_since: datetime | None
    ready: BoundedCount
    #: How long the oldest of the counted ready jobs waits; ``None``: there is none.
    oldest_wait: timedelta | None
    #: The jobs in the other states, by the name of the state.
    counts: dict[str, BoundedCount]
    #: Live workers that serve it.
    workers: int

    @property
    def is_unserved(self) -> bool:
        """Whether jobs wait that no live worker will take."""
        return self.ready.number > 0 and not self.workers and not self.is_paused


def listed_queues(
    using: str,
    processes: Sequence[ListedProcess],
    extra: Iterable[str] = (),
    states: Iterable[str] = tuple(STATES),
) -> list[ListedQueue]:
    """Return the queues that have jobs which have not finished, are paused, or that live workers
    name, and the ``extra`` ones, sorted by name. ``processes`` are those of the database, and
    ``states`` what is counted beside the ready jobs."""
    database = Database.of(using)
    present = database.current_time()
    counts = {state: _by_queue(using, STATES[state]) for state in states}
    paused = Pause.objects.using(using).values_list("queue_name", flat=True)
    names = {
        *readable(database.list_queues),
        *readable(lambda: paused),
        *(name for found, _ in counts.values() for name in found if isinstance(name, str)),
        *named_by_workers(processes),
        *extra,
    }
    ordered = sorted(names)
    pauses = read_each(Pause.objects.using(using), ordered)
    return queues_of(
        dict(zip(ordered, _ready(using, ordered), strict=True)),
        {name: getattr(row, "created_at", None) for name, row in pauses.items()},
        lambda name: {state: _count(name, *found) for state, found in counts.items()},
        processes,
        present,
    )


def queues_of(
    ready: Mapping[str, BoundedCount],
    paused: Mapping[str, datetime | None],
    counts: Callable[[str], dict[str, BoundedCount]],
    processes: Iterable[ListedProcess],
    present: datetime,
) -> list[ListedQueue]:
    """Return the queues of these ready jobs, by name; ``paused``: since when, if that is known.
    ``counts`` returns the jobs of a queue in other states."""
    workers = LiveWorkers(processes)
    return [
        ListedQueue(
            name,
            is_paused=name in paused,
            paused_since=paused.get(name),
            ready=found,
            oldest_wait=_since(found.first, present),
            counts=counts(name),
            workers=workers.of(name),
        )
        for name, found in ready.items()
    ]


def _ready(using: str, names: Sequence[str]) -> Iterator[BoundedCount]:
    for start in range(0, len(names), MOST_AT_ONCE):
        yield from count_ready(using, names[start : start + MOST_AT_ONCE])


def count_ready(
    using: str, names: Iterable[str], visible: VisibleJobs | None = None
) -> list[BoundedCount]:
    """Count the ready jobs of each of these queues, with when the first of them became ready, in
    one statement."""
    rows = ReadyExecution.objects.using(using).order_by("rank", "turn")
    of_each = [rows.filter(queue_name=name) for name in names]
    return count_each(using, of_each, "created_at", visible)


def _by_queue(using: str, model: type[Execution]) -> tuple[dict[str, int], bool]:
    """Count the rows of a state by queue, among as many as are counted; return whether these are
    all."""
    with suppress_damage():
        found = _failed(using) if model is FailedExecution else _grouped(using, model)
        return found, sum(found.values()) <= CAP
    return {}, False


def _grouped(using: str, model: Any) -> dict[str, int]:
    rows = model.objects.using(using).order_by().values("queue_name")[: CAP + 1]
    text = "SELECT queue_name, COUNT(*) FROM {rows} GROUP BY queue_name"
    return dict(rows_of(using, [(text, rows)]))


def _failed(using: str) -> dict[str, int]:
    # No join: a planner may read all jobs for it.
    rows = FailedExecution.objects.using(using).order_by("-created_at", "-job_id")
    ids = list(rows.values_list("pk", flat=True)[: CAP + 1])
    jobs = Job.objects.using(using).order_by()
    found: Counter[str] = Counter()
    for start in range(0, len(ids), MOST_LOOKED_UP):
        part = jobs.filter(pk__in=ids[start : start + MOST_LOOKED_UP])
        found.update(readable(partial(part.values_list, "queue_name", flat=True)))
    return found


def _count(name: str, found: dict[str, int], exact: bool) -> BoundedCount:
    return BoundedCount(found.get(name, 0), exact)


def named_by_workers(processes: Iterable[ListedProcess]) -> Iterator[str]:
    """Yield the queues that live workers name, each once, without those that no database could
    have; as many as are looked at."""
    yield from islice(_named(processes), MOST_NAMED)


def left_out(processes: Iterable[ListedProcess]) -> int:
    """Return how many queues that live workers name are not looked at."""
    return max(0, sum(1 for _ in _named(processes)) - MOST_NAMED)


def _named(processes: Iterable[ListedProcess]) -> Iterator[str]:
    entries = dict.fromkeys(name for each in processes if each.is_live for name in each.queues)
    names = (name for name in entries if name[:1] != "!" and name[-1:] != "*")
    return filter(is_storable, names)


def _since(first: datetime | None, present: datetime) -> timedelta | None:
    return None if first is None else max(timedelta(0), present - portable.aware(first))
