"""Queue: the waiting jobs of one name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import QuerySet

from ..dialects import portable
from ..dialects.database import Database
from ..signals import QueueLifecycle, Signal, queue_paused, queue_resumed, send_after_commit
from .base import alters_data
from .execution import ReadyExecution
from .job import Job
from .operations.discard import discard
from .operations.walk import batches_of, without_successors
from .pause import Pause


@dataclass(frozen=True)
class Queue:
    """The waiting jobs of one name, which can be paused. Names are compared exactly."""

    name: str
    #: Database alias; ``""`` for the one that the database routers choose for jobs.
    using: str = ""

    @classmethod
    def all(cls, using: str = "") -> list[Queue]:
        """Return the queues that have ready jobs or are paused, sorted by name."""
        using = using or _default()
        paused = Pause.objects.using(using).values_list("queue_name", flat=True)
        waiting = Database.of(using).list_queues()
        return [cls(name, using) for name in sorted({*waiting, *paused})]

    @property
    def size(self) -> int:
        """The number of ready jobs. Counts rows, which takes time for millions of them."""
        return self._ready().count()

    @property
    def latency(self) -> timedelta:
        """The waiting time of the oldest ready job, or zero. Reads every row of the queue."""
        first = self._ready().order_by("created_at").values_list("created_at", flat=True).first()
        if first is None:
            return timedelta(0)
        present = self._database.current_time()
        return max(timedelta(0), present - portable.aware(first))

    @property
    def paused(self) -> bool:
        """Whether the queue is paused."""
        return self._pauses().exists()

    @alters_data
    def pause(self) -> bool:
        """Stop workers from taking jobs from this queue, from their next poll on; return whether
        it was open. Running jobs go on."""
        row = Pause(queue_name=self.name, created_at=self._database.storable_time())
        changed = self._database.insert_if_absent(row, ["queue_name"])
        self._send(queue_paused, changed)
        return changed

    @alters_data
    def resume(self) -> bool:
        """Let workers take jobs again; return whether the queue was paused."""
        database = self._database
        with database.transaction():
            deleted = self._pauses()._raw_delete(database.alias)
        database.ring_after_commit([self.name])
        self._send(queue_resumed, bool(deleted))
        return bool(deleted)

    @alters_data
    def clear(self, batch_size: int = 500) -> int:
        """Discard all ready jobs; return their number. Blocked jobs that get the permits of these
        are left alone."""
        if batch_size < 1:
            raise ValueError(f"clear(): batch_size is {batch_size}; it must be at least 1.")
        jobs = Job.objects.using(self._alias)
        batches = without_successors(jobs, batches_of(self._ready(), "pk", batch_size))
        return sum(discard(jobs, ids) for ids in batches)

    def _send(self, signal: Signal, changed: bool) -> None:
        send_after_commit(
            signal, QueueLifecycle, self._alias, queue_name=self.name, changed=changed
        )

    @property
    def _alias(self) -> str:
        return self.using or _default()

    @property
    def _database(self) -> Database:
        return Database.of(self._alias)

    def _ready(self) -> QuerySet[ReadyExecution]:
        return ReadyExecution.objects.using(self._alias).filter(queue_name=self.name)

    def _pauses(self) -> QuerySet[Pause]:
        return Pause.objects.using(self._alias).filter(pk=self.name)


def _default() -> str:
    return router.db_for_write(Job) or DEFAULT_DB_ALIAS
