"""What becomes of the claims of a process that is dead."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db.backends.base.base import BaseDatabaseWrapper

from ..backend import SteadyQueueBackend
from ..compat import task_backends
from ..dialects import ClaimedJob, Dialect
from ..errors import ProcessMissingError, SteadyQueueError
from ..models import claims
from ..models import process as processes
from ..models.process import Process
from ..results import task_of
from . import marks
from .attempt import Attempt, Done
from .database import QueueDatabase
from .marks import Remains
from .notifier import announce
from .outcomes import finished, released

logger = logging.getLogger("steady_queue.supervisor")

#: Claims that are handled in one transaction.
BATCH = 200


class Recovery:
    """Ends the claims of dead processes: jobs that were running lose the attempt, outcomes that
    were known are stored, the other jobs are ready again, untouched.

    Raises ``Unavailable`` when the database is away; to do it again does no harm.
    """

    def __init__(self, database: QueueDatabase) -> None:
        self.database = database

    def process_died(self, name: str, remains: Remains | None, error: SteadyQueueError) -> None:
        """End the claims of the process ``name`` and delete its row.

        The jobs that it was running end with ``error``; without ``remains`` those are all.
        """
        process = self.database.run(
            lambda connection, _: Process.objects.using(connection.alias).filter(name=name).first()
        )
        if process is None:
            marks.forget(name)
            return

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            return claims.held_by(connection.alias, process.pk, BATCH)

        self._end_all(read, remains, error, process.name)
        self.database.run(
            lambda connection, _: processes.deregister(connection.alias, process.name)
        )
        marks.forget(name)

    def orphaned_claims(self) -> None:
        """End the claims whose process is not registered."""

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            return claims.without_process(connection.alias, BATCH)

        self.database.run(lambda connection, _: claims.discard_without_job(connection.alias))
        error = ProcessMissingError(
            "The process that had claimed this job is not registered any more."
        )
        self._end_all(read, None, error, "unknown")

    def _end_all(
        self,
        read: Callable[[BaseDatabaseWrapper, Dialect], list[ClaimedJob]],
        remains: Remains | None,
        error: SteadyQueueError,
        worker: str,
    ) -> None:
        while batch := self.database.run(read):
            done = [_done(claim, remains, error, worker) for claim in batch]
            held = self.database.run(
                lambda connection, dialect, done=done: dialect.settle(  # type: ignore[misc]
                    connection, [each.outcome for each in done]
                )
            )
            for each in done:
                if each.outcome.job_id in held and each.error is not None:
                    logger.warning("Job %d was interrupted: %s", each.outcome.job_id, error)
                    announce(each)


def _done(claim: ClaimedJob, remains: Remains | None, error: SteadyQueueError, worker: str) -> Done:
    if remains is not None:
        ended = remains.ended.get(claim.job_id)
        if ended is not None and ended.token == claim.token:
            return Done(
                finished(claim, worker, ended.started_at, ended.return_value, ended.preserve)
            )
        if claim.job_id not in remains.running:
            return Done(released(claim))
    return _interrupted(claim, error, worker)


def _interrupted(claim: ClaimedJob, error: SteadyQueueError, worker: str) -> Done:
    backends = [
        backend
        for alias in task_backends
        if isinstance(backend := task_backends[alias], SteadyQueueBackend)
    ]
    backend = next((b for b in backends if b.alias == claim.backend_name), backends[0])
    task = task_of(claim.task_path, claim.backend_name, claim.queue_name, claim.rank)
    attempt = Attempt(claim, task, backend, worker, claim.claimed_at)
    return attempt.failed(error, claim.claimed_at)
