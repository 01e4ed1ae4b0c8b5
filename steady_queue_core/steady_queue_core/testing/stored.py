"""The jobs of a test in its database, processed by the database's dialect."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from secrets import token_hex

from django.db import DatabaseError, connections

from ..backend import SteadyQueueBackend
from ..compat import TaskResult
from ..configured_backends import own_backend, own_backends, queue_databases
from ..dialects import ClaimedJob, Outcome, ProcessIdentity, QueueSelector, dialect_for, portable
from ..models import Job, ScheduledExecution
from ..models import process as processes
from ..models.operations import run_now as dispatching
from .jobs import matching


class StoredJobs:
    """Claims and settles on the calling thread's own connection, and so in its transaction."""

    worker = "testing"

    def __init__(self, using: str, selector: QueueSelector, process: ProcessIdentity) -> None:
        self.using, self.selector, self.process = using, selector, process
        self.connection, self.dialect = connections[using], dialect_for(using)

    @classmethod
    @contextmanager
    def opened(cls, using: str, selector: QueueSelector) -> Iterator[StoredJobs]:
        """Register a process that may claim jobs, for the block."""
        name = f"{cls.worker}-{token_hex(8)}"
        process = processes.register(
            using, kind="worker", name=name, pid=os.getpid(), hostname=socket.gethostname(),
            supervisor_id=None, metadata="{}",
        )  # fmt: skip
        try:
            yield cls(using, selector, process)
        finally:
            with suppress(DatabaseError):  # A transaction that is broken takes the row along.
                processes.deregister(using, name)

    def present(self) -> datetime:
        return self.dialect.current_time(self.connection)

    def claim(self) -> ClaimedJob | None:
        # In a transaction: else a dialect remembers how far it has come, for the next test as well.
        with self.dialect.transaction(self.connection):
            claimed = self.dialect.claim(self.connection, self.process, self.selector, 1)
            self.dialect.free_started_keys(self.connection, claimed)
        return claimed[0] if claimed else None

    def backend_of(self, claim: ClaimedJob) -> SteadyQueueBackend:
        return own_backend(claim.backend_name)

    def settle(self, outcome: Outcome) -> None:
        self.dialect.settle(self.connection, [outcome])

    def next_due(self) -> datetime | None:
        instants = [due for _, due in self._scheduled()]
        return min(instants, default=None)

    def make_due(self, until: datetime) -> None:
        dispatching.run_now(
            Job.objects.using(self.using),
            [job_id for job_id, due in self._scheduled() if due <= until],
        )

    def keeps(self, result: TaskResult) -> bool:
        backend = own_backends().get(result.backend)
        return backend is not None and backend.database == self.using

    def put_off(self, job_id: int, due: datetime) -> None:
        rows = ScheduledExecution.objects.using(self.using).filter(pk=job_id)
        rows.update(due_at=portable.storable(due))

    def _scheduled(self) -> list[tuple[int, datetime]]:
        found = ScheduledExecution.objects.using(self.using).values_list(
            "pk", "queue_name", "due_at"
        )
        rows = list(found)
        queues = set(matching(self.selector, (name for _, name, _ in rows)))
        return [(pk, portable.aware(due)) for pk, name, due in rows if name in queues]


def databases() -> list[str]:
    """Return the databases that hold jobs, as far as the test may use them."""
    found = queue_databases()
    # Django's test cases wrap the cursors of databases that a test may not use.
    allowed = [using for using in found if not hasattr(connections[using].cursor, "wrapped")]
    return allowed or found
