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
from typing import NamedTuple, cast

from django.db.backends.base.base import BaseDatabaseWrapper

from ..features.fair.queues import LARGEST_WEIGHT, LEAST_WEIGHT
from . import tables
from .batches import parts
from .operations import Operations
from .portable.models import rows_of
from .records import Arrival, Level, TurnKey, TurnRow

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

    def __init__(self, connection: BaseDatabaseWrapper, dialect: Operations) -> None:
        self._connection, self._dialect = connection, dialect

    def give(self, groups: Iterable[Comers]) -> None:
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
        for some in parts(keys):
            rows |= self._dialect.lock_turns(self._connection, some)
        return rows

    def _save(self, rows: Mapping[TurnKey, TurnRow]) -> None:
        for some in parts(list(rows)):
            self._dialect.save_turns(self._connection, {key: rows[key] for key in some})

    def _weights(self, arrivals: Sequence[Arrival]) -> Callable[[Arrival], float]:
        """Return what looks up the weight of the key of a job."""
        names = {each.queue_name for each in arrivals}
        shares = rows_of(self._connection, "Share").filter(queue_name__in=names)
        given = {
            (name, key): weight
            for some in parts(sorted({each.key for each in arrivals}))
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
            for some in parts(list(turns), PART):
                cases = " ".join(
                    f"WHEN {int(job_id)} THEN {_unlike_id(turns[job_id], job_id)!r}"
                    for job_id in some
                )
                job_ids = ", ".join(str(int(job_id)) for job_id in some)
                cursor.execute(WRITE.format(cases=cases, job_ids=job_ids))


def reached(connection: BaseDatabaseWrapper, level: Level, without: Collection[int] = ()) -> float:
    """Return the turn that a queue has reached: the first one of its ready jobs, except those whose
    ids are given; in an idle queue, the id of the latest job."""
    name = level.queue_name
    # By a range, in whose order only one index is: a planner may take the other one, and pass over
    # the jobs of all other queues.
    rows = rows_of(connection, "ReadyExecution")
    rows = rows.filter(queue_name__gte=name, queue_name__lte=name, rank=level.rank)
    rows = rows.order_by("queue_name", "rank", "turn")
    for turn, job_id in rows.values_list("turn", "job_id")[: len(without) + 1]:
        if job_id not in without:
            return valid_number(turn, 0.0, LARGEST, float(job_id))
    latest = rows_of(connection, "Job").order_by("-pk")
    return float(latest.values_list("pk", flat=True).first() or 0)


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
