"""Jobs that become ready, and what follows of it in the same transaction.

Whoever makes jobs ready tells it here, after everything else: those of fair queues get their turns.
A database without fair queues is asked nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet

from ..features.fair.key import FairKey
from ..features.fair.of_database import fair_queues_in
from .batches import parts
from .operations import Operations
from .outcome import Destination, Ending, Outcome
from .portable.models import rows_of
from .portable.tokens import claims_before
from .records import Arrival, EnqueuedJob, Level, NewJob, TurnKey
from .turns import Comers, Turns

#: What is read of a job that has become ready.
COLUMNS = ("job_id", "queue_name", "rank", "token", "job__metadata", "job__started_at")


class Ready:
    """Jobs that the current transaction makes ready."""

    def __init__(self, connection: BaseDatabaseWrapper, dialect: Operations) -> None:
        self._connection, self._dialect = connection, dialect
        self._queues = fair_queues_in(connection.alias)

    @property
    def matters(self) -> bool:
        """Whether anything follows of it, in this database."""
        return self._queues is not None

    def concerns(self, outcomes: Iterable[Outcome]) -> bool:
        """Whether settling ``outcomes`` may make jobs of fair queues ready."""
        return self._queues is not None and any(
            outcome.is_limited or (_returns(outcome) and self._is_fair(outcome.queue_name))
            for outcome in outcomes
        )

    def new(self, jobs: Sequence[NewJob], stored: Sequence[EnqueuedJob]) -> None:
        """Give turns to jobs that were just stored, and to those that were admitted with them."""
        if self._queues is None:
            return
        arrivals, doubtful = [], list[int]()
        for job, new in zip(jobs, stored, strict=True):
            if job.fair_key is None or new.job_id is None or job.waits:
                continue
            if job.limit is not None or job.run_at is not None or job.delay is not None:
                doubtful.append(new.job_id)
            else:
                arrivals.append(self._arrival(new.job_id, job.queue_name, job.rank, job.fair_key))
        keys = {job.limit.key for job in jobs if job.limit is not None}
        self._give([Comers(arrivals, are_new=True), *self._moved(doubtful), *self._admitted(keys)])

    def moved(self, job_ids: Collection[int], keys: Collection[str] = ()) -> None:
        """Give turns to those of these jobs that are ready, and to those that hold permits of these
        keys and have none. One after the other, two transactions would deadlock."""
        if self._queues is not None:
            self._give([*self._moved(job_ids), *self._admitted(keys)])

    def settled(self, outcomes: Sequence[Outcome]) -> None:
        """Give turns to jobs whose claims have ended, and to those that were admitted then."""
        returned = [each for each in outcomes if _returns(each) and self._is_fair(each.queue_name)]
        released = {each.job_id for each in returned if each.ending is Ending.RELEASED}
        others = [each.job_id for each in returned if each.job_id not in released]
        keys = {str(o.concurrency_key) for o in outcomes if o.is_limited}
        back = self._found(
            rows_of(self._connection, "ReadyExecution").filter(pk__in=released), are_back=True
        )
        self._give([back, *self._moved(others), *self._admitted(keys)])

    def any_is_due(self, limit: int) -> bool:
        """Whether any of the next jobs to dispatch is for a fair queue."""
        if self._queues is None:
            return False
        names = self._due(limit).values_list("queue_name", flat=True)
        return any(self._is_fair(name) for name in set(names))

    def lock_due(self, limit: int) -> list[Any]:
        """Return the rows of the next jobs to dispatch, locked."""
        return list(self._dialect.lock_rows(self._connection, self._due(limit), wait=False))

    def dispatched(self, rows: Sequence[Any]) -> None:
        """Give turns to jobs that were dispatched, and to those that were admitted with them."""
        keys = {row.concurrency_key for row in rows if row.concurrency_key is not None}
        self.moved([row.pk for row in rows if row.concurrency_key is None], keys)

    def key_of(self, queue_name: str, rank: int, metadata: object) -> TurnKey | None:
        """Return the key that a job shares in, by its metadata, if its queue is fair."""
        if not self._is_fair(queue_name):
            return None
        return Level(queue_name, rank), FairKey.read(metadata) or ""

    def _is_fair(self, queue_name: str) -> bool:
        return self._queues is not None and self._queues.weight_of(queue_name) is not None

    def _due(self, limit: int) -> QuerySet[Any]:
        due = rows_of(self._connection, "ScheduledExecution").filter(
            due_at__lte=self._dialect.now(self._connection)
        )
        return due.order_by("due_at", "rank", "job_id")[:limit]

    def _arrival(self, job_id: int, queue_name: str, rank: int, key: str) -> Arrival:
        weight = None if self._queues is None else self._queues.weight_of(queue_name)
        return Arrival(job_id, queue_name, rank, key, weight or 1.0)

    def _moved(self, job_ids: Collection[int]) -> Iterator[Comers]:
        """Return those of these jobs that are ready."""
        for some in parts(job_ids):
            yield self._found(rows_of(self._connection, "ReadyExecution").filter(pk__in=some), some)

    def _admitted(self, keys: Collection[str]) -> Iterator[Comers]:
        """Return those that hold permits of these keys."""
        for some in parts(sorted(keys)):
            holders = rows_of(self._connection, "Permit").filter(key__in=some).values("job_id")
            yield self._found(rows_of(self._connection, "ReadyExecution").filter(pk__in=holders))

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
        Turns(self._connection, self._dialect).give(groups)


def _returns(outcome: Outcome) -> bool:
    """Whether a job is ready after its claim, or waits for a permit."""
    return outcome.destination in (Destination.READY, Destination.READY_OR_BLOCKED)
