"""Queue: a name on jobs, seen as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import QuerySet

from ..dialects import portable
from ..signals import QueueLifecycle, Signal, queue_paused, queue_resumed, send_after_commit
from .base import alters_data, queue_database
from .execution import ReadyExecution
from .job import Job
from .operations.discard import discard
from .pause import Pause


@dataclass(frozen=True)
class Queue:
    """The jobs of one name that wait, and whether workers take them. Names compare exactly."""

    name: str
    #: Alias of the database; ``""``: the one that the routers give for jobs.
    using: str = ""

    @classmethod
    def all(cls, using: str = "") -> list[Queue]:
        """Return the queues that have ready jobs or are paused, by name."""
        using = using or _default()
        connection, dialect = queue_database(using)
        paused = Pause.objects.using(using).values_list("queue_name", flat=True)
        return [cls(name, using) for name in sorted({*dialect.list_queues(connection), *paused})]

    @property
    def size(self) -> int:
        """How many jobs are ready. Counts rows: with millions of them it takes time."""
        return self._ready().count()

    @property
    def latency(self) -> timedelta:
        """How long the job has waited that became ready first; none: zero. Looks at every row."""
        first = self._ready().order_by("created_at").values_list("created_at", flat=True).first()
        if first is None:
            return timedelta(0)
        connection, dialect = queue_database(self._database)
        return max(timedelta(0), dialect.current_time(connection) - portable.aware(first))

    @property
    def paused(self) -> bool:
        """Whether workers leave this queue alone."""
        return self._pauses().exists()

    @alters_data
    def pause(self) -> bool:
        """Have workers take no more jobs from this queue, from their next poll on; say whether
        that is new. Jobs that run go on."""
        connection, dialect = queue_database(self._database)
        present = portable.storable(dialect.current_time(connection))
        row = Pause(queue_name=self.name, created_at=present)
        changed = dialect.insert_if_absent(connection, row, ["queue_name"])
        self._tell(queue_paused, changed)
        return changed

    @alters_data
    def resume(self) -> bool:
        """Have workers take jobs again; say whether the queue was paused."""
        connection, dialect = queue_database(self._database)
        with dialect.transaction(connection):
            gone = self._pauses()._raw_delete(self._database)
        dialect.ring_after_commit(connection, [self.name])
        self._tell(queue_resumed, bool(gone))
        return bool(gone)

    @alters_data
    def clear(self, batch_size: int = 500) -> int:
        """Discard all ready jobs; return how many."""
        if batch_size < 1:
            raise ValueError(f"clear(): batch_size is {batch_size}; it must be at least 1.")
        first = self._ready().order_by("rank", "job_id").values_list("pk", flat=True)
        total = 0
        known: list[int] = []
        while (ids := list(first[:batch_size])) and ids != known:
            total, known = total + discard(self._database, ids), ids
        return total

    def _tell(self, signal: Signal, changed: bool) -> None:
        send_after_commit(
            signal, QueueLifecycle, self._database, queue_name=self.name, changed=changed
        )

    @property
    def _database(self) -> str:
        return self.using or _default()

    def _ready(self) -> QuerySet[ReadyExecution]:
        return ReadyExecution.objects.using(self._database).filter(queue_name=self.name)

    def _pauses(self) -> QuerySet[Pause]:
        return Pause.objects.using(self._database).filter(pk=self.name)


def _default() -> str:
    return router.db_for_write(Job) or DEFAULT_DB_ALIAS
