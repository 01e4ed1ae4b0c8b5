"""Fair queues: the turns of jobs that become ready, by start-time fair queueing.

A job takes the next turn of its key, and the key moves on by 1 / weight. A key that has waited
moves up to the turn that the queue has reached: the first one of those that are ready, or, if none
is, the id of the latest job. Plain queues have the ids of jobs for turns, so that a worker of all
queues compares jobs by age. Each rank of a queue shares on its own.

The rows of keys are locked in the order of their names, after everything else that makes jobs
ready.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import floor
from typing import Any, NamedTuple, TypeVar, cast

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet

from ..fair_queues import LARGEST_WEIGHT, LEAST_WEIGHT, FairQueues
from . import tables
from .batches import MOST_JOBS
from .fair_key import FairKey
from .fair_queues import fair_queues_in
from .operations import Operations
from .outcome import Destination, Ending, Outcome
from .portable.models import model
from .portable.tokens import claims_before
from .records import Arrival, EnqueuedJob, Level, NewJob, TurnKey, TurnRow

T = TypeVar("T")

#: What is read of a job that has become ready.
COLUMNS = ("job_id", "queue_name", "rank", "token", "job__metadata", "job__started_at")
#: How many jobs one statement gives their turns.
PART = 500
#: No turn that a queue has stored is larger: beyond it, turns would differ by more than a job's.
LARGEST = 2.0**53
#: By how much a turn must differ from the id of its job.
NUDGE = 0.001

# Numbers, in the text: hundreds of parameters take drivers longer to place.
WRITE = f"UPDATE {tables.READY} SET turn = CASE job_id {{cases}} END WHERE job_id IN ({{job_ids}})"


class Comers(NamedTuple):
    """Jobs that become ready and have no turns yet."""

    #: Those that take the next turns of their keys, in this order.
    charged: Sequence[Arrival]
    #: Those that have had turns which they did not use.
    free: Sequence[Arrival] = ()
    #: Whether no job is later than these.
    are_new: bool = False


class Turns:
    """Gives jobs of fair queues their turns, in the transaction in which they become ready."""

    def __init__(
        self, connection: BaseDatabaseWrapper, dialect: Operations, queues: FairQueues
    ) -> None:
        self._connection, self._dialect, self._queues = connection, dialect, queues

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper, dialect: Operations) -> Turns | None:
        """Return what gives turns in a database; ``None``: it has no fair queues."""
        queues = fair_queues_in(connection.alias)
        return None if queues is None else cls(connection, dialect, queues)

    def concern(self, outcomes: Iterable[Outcome]) -> bool:
        """Whether settling ``outcomes`` may make jobs of fair queues ready."""
        return any(
            outcome.is_limited or (_returns(outcome) and self._is_fair(outcome.queue_name))
            for outcome in outcomes
        )

    def of_new(self, jobs: Sequence[NewJob], stored: Sequence[EnqueuedJob]) -> None:
        """Give turns to jobs that were just stored, and to those that were admitted with them."""
        arrivals, doubtful = [], list[int]()
        for job, new in zip(jobs, stored, strict=True):
            if job.fair_key is None or new.job_id is None or job.waits:
                continue
            if job.limit is not None or job.run_at is not None or job.delay is not None:
                doubtful.append(new.job_id)
            else:
                arrivals.append(self._arrival(new.job_id, job.queue_name, job.rank, job.fair_key))
        keys = {job.limit.key for job in jobs if job.limit is not None}
        at_once = Comers(arrivals, are_new=True)
        self._give([at_once, *self._moved(doubtful), *self._admitted(keys)])

    def of_ready(self, job_ids: Collection[int], keys: Collection[str] = ()) -> None:
        """Give turns to those of these jobs that are ready, and to those that hold permits of these
        keys and have none."""
        self._give([*self._moved(job_ids), *self._admitted(keys)])

    def of_settled(self, outcomes: Sequence[Outcome]) -> None:
        """Give turns to jobs whose claims have ended, and to those that were admitted then."""
        returned = [each for each in outcomes if _returns(each) and self._is_fair(each.queue_name)]
        released = {each.job_id for each in returned if each.ending is Ending.RELEASED}
        others = [each.job_id for each in returned if each.job_id not in released]
        keys = {str(o.concurrency_key) for o in outcomes if o.is_limited}
        back = self._found(self._rows("ReadyExecution").filter(pk__in=released), are_back=True)
        self._give([back, *self._moved(others), *self._admitted(keys)])

    def any_is_due(self, limit: int) -> bool:
        """Whether any of the next jobs to dispatch is for a fair queue."""
        names = self._due(limit).values_list("queue_name", flat=True)
        return any(self._is_fair(name) for name in set(names))

    def lock_due(self, limit: int) -> list[Any]:
        """Return the rows of the next jobs to dispatch, locked."""
        return list(self._dialect.lock_rows(self._connection, self._due(limit), wait=False))

    def of_dispatched(self, rows: Sequence[Any]) -> None:
        """Give turns to jobs that were dispatched, and to those that were admitted with them."""
        keys = {row.concurrency_key for row in rows if row.concurrency_key is not None}
        self.of_ready([row.pk for row in rows if row.concurrency_key is None], keys)

    def key_of(self, queue_name: str, rank: int, metadata: object) -> TurnKey | None:
        """Return the key that a job shares in, by its metadata, if its queue is fair."""
        if not self._is_fair(queue_name):
            return None
        return Level(queue_name, rank), FairKey.read(metadata) or ""

    def _due(self, limit: int) -> QuerySet[Any]:
        due = self._rows("ScheduledExecution").filter(
            due_at__lte=self._dialect.now(self._connection)
        )
        return due.order_by("due_at", "rank", "job_id")[:limit]

    def _arrival(self, job_id: int, queue_name: str, rank: int, key: str) -> Arrival:
        return Arrival(job_id, queue_name, rank, key, self._queues.weight_of(queue_name) or 1.0)

    def _is_fair(self, queue_name: str) -> bool:
        return self._queues.weight_of(queue_name) is not None

    def _moved(self, job_ids: Collection[int]) -> Iterator[Comers]:
        """Return those of these jobs that are ready."""
        for some in _parts(job_ids, MOST_JOBS):
            yield self._found(self._rows("ReadyExecution").filter(pk__in=some), some)

    def _admitted(self, keys: Collection[str]) -> Iterator[Comers]:
        """Return those that hold permits of these keys."""
        for some in _parts(sorted(keys), MOST_JOBS):
            holders = self._rows("Permit").filter(key__in=some).values("job_id")
            yield self._found(self._rows("ReadyExecution").filter(pk__in=holders))

    def _found(
        self, rows: QuerySet[Any], order: Sequence[int] = (), *, are_back: bool = False
    ) -> Comers:
        """Return those of these ready jobs that have no turn, in order.

        Those that are back from their claims, or have never started although they were claimed,
        have had one that they did not use.
        """
        charged, free = list[Arrival](), list[Arrival]()
        waiting = rows.filter(turn=F("job_id")).order_by("rank", "turn").values_list(*COLUMNS)
        for job_id, queue_name, rank, token, metadata, started_at in waiting:
            if self._is_fair(queue_name):
                arrival = self._arrival(job_id, queue_name, rank, FairKey.read(metadata) or "")
                is_unused = are_back or (claims_before(token) and started_at is None)
                (free if is_unused else charged).append(arrival)
        places = {job_id: place for place, job_id in enumerate(order)}
        return Comers(sorted(charged, key=lambda each: places.get(each.job_id, 0)), free)

    def _give(self, groups: Iterable[Comers]) -> None:
        """Give turns to jobs, group by group."""
        groups = [each for each in _once(groups) if each.charged or each.free]
        charged = [each for group in groups for each in group.charged]
        if len(charged) == len(groups) == 1 and groups[0].are_new and self._dialect.takes_turns:
            self._dialect.take_turn(self._connection, charged[0])
            return
        # Those of all groups, before one of them takes its turns: in one order.
        rows = self._lock(sorted({(_level(each), each.key) for each in charged}))
        following = {key: valid_number(row.turn, 0.0, LARGEST, 0.0) for key, row in rows.items()}
        for group in groups:
            self._put_first(group.free)
            self._take(group, following)
        self._save({key: row._replace(turn=following[key]) for key, row in rows.items()})

    def _take(self, group: Comers, following: dict[TurnKey, float]) -> None:
        """Give each of these jobs the next turn of its key, which are locked."""
        arrivals = group.charged
        if not arrivals:
            return
        weight = self._weights(arrivals)
        reached = self._reached(arrivals, are_new=group.are_new)
        turns: dict[int, float] = {}
        for each in arrivals:
            level, text = _level(each), each.key
            turn = max(reached[level], following[level, text])
            following[level, text] = turn + 1 / weight(each)
            turns[each.job_id] = turn
        self._write(turns)

    def _put_first(self, arrivals: Sequence[Arrival]) -> None:
        """Let jobs come next, in the order of their ids."""
        if arrivals:
            reached = self._reached(arrivals)
            turns = {each.job_id: _before(reached[_level(each)], each.job_id) for each in arrivals}
            self._write(turns)

    def _lock(self, keys: Sequence[TurnKey]) -> dict[TurnKey, TurnRow]:
        """Lock the rows of keys, in their order; return them."""
        rows: dict[TurnKey, TurnRow] = {}
        for some in _parts(keys, MOST_JOBS):
            rows |= self._dialect.lock_turns(self._connection, some)
        return rows

    def _save(self, rows: Mapping[TurnKey, TurnRow]) -> None:
        for some in _parts(list(rows), MOST_JOBS):
            self._dialect.save_turns(self._connection, {key: rows[key] for key in some})

    def _weights(self, arrivals: Sequence[Arrival]) -> Callable[[Arrival], float]:
        """Return what looks up the weight of the key of a job."""
        names = {each.queue_name for each in arrivals}
        shares = self._rows("Share").filter(queue_name__in=names)
        given = {
            (name, key): weight
            for some in _parts(sorted({each.key for each in arrivals}), MOST_JOBS)
            for name, key, weight in shares.filter(key__in=some).values_list(
                "queue_name", "key", "weight"
            )
        }

        def weight(arrival: Arrival) -> float:
            default = arrival.default_weight
            found = given.get((arrival.queue_name, arrival.key), default)
            return valid_number(found, LEAST_WEIGHT, LARGEST_WEIGHT, default)

        return weight

    def _reached(self, arrivals: Sequence[Arrival], *, are_new: bool = False) -> dict[Level, float]:
        """Return the turn that the queue has reached, by levels."""
        own: dict[Level, set[int]] = {}
        for each in arrivals:
            own.setdefault(_level(each), set()).add(each.job_id)
        # No job is later than new ones: the first one of them has the turn of an idle queue.
        return {
            level: reached(self._connection, level, () if are_new else job_ids)
            for level, job_ids in own.items()
        }

    def _write(self, turns: Mapping[int, float]) -> None:
        with self._connection.cursor() as cursor:
            for some in _parts(list(turns), PART):
                cases = " ".join(
                    f"WHEN {int(job_id)} THEN {_unlike_id(turns[job_id], job_id)!r}"
                    for job_id in some
                )
                job_ids = ", ".join(str(int(job_id)) for job_id in some)
                cursor.execute(WRITE.format(cases=cases, job_ids=job_ids))

    def _rows(self, name: str) -> QuerySet[Any]:
        rows: QuerySet[Any] = model(name).objects.using(self._connection.alias)
        return rows


def reached(connection: BaseDatabaseWrapper, level: Level, without: Collection[int] = ()) -> float:
    """Return the turn that a queue has reached: the first one of its ready jobs, except those whose
    ids are given; in an idle queue, the id of the latest job."""
    name = level.queue_name
    # By a range, in whose order only one index is: a planner may take the other one, and pass over
    # the jobs of all other queues.
    rows = model("ReadyExecution").objects.using(connection.alias)
    rows = rows.filter(queue_name__gte=name, queue_name__lte=name, rank=level.rank)
    rows = rows.order_by("queue_name", "rank", "turn")
    for turn, job_id in rows.values_list("turn", "job_id")[: len(without) + 1]:
        if job_id not in without:
            return valid_number(turn, 0.0, LARGEST, float(job_id))
    latest = model("Job").objects.using(connection.alias).order_by("-pk")
    return float(latest.values_list("pk", flat=True).first() or 0)


def _returns(outcome: Outcome) -> bool:
    """Whether a job is ready after its claim, or waits for a permit."""
    return outcome.destination in (Destination.READY, Destination.READY_OR_BLOCKED)


def _once(groups: Iterable[Comers]) -> Iterator[Comers]:
    """Yield groups with each job in the first one only that it is in."""
    seen = set[int]()
    for group in groups:
        charged = [each for each in group.charged if each.job_id not in seen]
        free = [each for each in group.free if each.job_id not in seen]
        seen.update(each.job_id for each in (*charged, *free))
        yield group._replace(charged=charged, free=free)


def _level(arrival: Arrival) -> Level:
    return Level(arrival.queue_name, arrival.rank)


def _before(turn: float, job_id: int) -> float:
    """Return a turn that comes before this one, in the order of the ids of jobs.

    It is in the upper half of a 64th, where turns of weights that are whole seldom are. If the
    given one is there, it is that of a job which came back before: both are in the same half.
    """
    place = floor(turn * 64)
    if turn * 64 - place < 0.5:
        place -= 1
    return (place + 0.5) / 64 + job_id % 4096 * 2.0**-19


def _unlike_id(turn: float, job_id: int) -> float:
    """Return a turn that differs from the id of its job, which says that it has none yet."""
    return turn + NUDGE if turn == job_id else turn


def valid_number(value: object, least: float, largest: float, default: float) -> float:
    """Return a number that a row holds; ``default`` for what no queue can have stored."""
    is_number = isinstance(value, int | float) and least <= value <= largest
    return float(cast(float, value)) if is_number else default


def _parts(items: Collection[T], size: int) -> Iterator[list[T]]:
    ordered = list(items)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]
