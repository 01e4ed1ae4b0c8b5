"""What becomes of the claims of a process that is dead."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from django.db import DataError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from ...configured_backends import own_backend
from ...dialects import ClaimedJob, Dialect
from ...errors import ProcessMissingError, SteadyQueueError
from ...logging import about, get_logger
from ...models import claims
from ...models import process as processes
from ...signals import send, task_lost
from ...tasks.results import task_of
from ..base import journal_reader as remains
from ..base.database import QueueDatabase
from ..base.identity import ProcessLocation
from ..base.journal_reader import JournalSnapshot
from ..base.log_context import about_job
from ..worker import outcomes
from ..worker.attempt import Attempt, Done
from ..worker.signal_sender import announce

logger = get_logger("steady_queue.supervisor")

#: Claims that are handled in one transaction.
BATCH = 200
#: Processes that are remembered when their claims have ended.
MOST_ENDED = 100

Read = Callable[[BaseDatabaseWrapper, Dialect], list[ClaimedJob]]


class Recovery:
    """Ends the claims of dead processes: jobs that were running lose the attempt, outcomes that
    were known are stored, the other jobs are ready again, untouched.

    Raises ``Unavailable`` when the database is away; to do it again does no harm.
    """

    def __init__(self, database: QueueDatabase) -> None:
        self.database = database
        #: Processes whose claims have ended. What they claim after that they cannot have started:
        #: a statement of theirs was still under way.
        self._ended: deque[int] = deque(maxlen=MOST_ENDED)
        #: Claims of other processes that are not registered, and when each was first seen.
        self._orphans: dict[tuple[int, int], float] = {}

    def process_died(
        self, name: str, left: JournalSnapshot | None, error: SteadyQueueError
    ) -> None:
        """End the claims of the process ``name`` and delete its row.

        The jobs that it was running end with ``error``; where nothing is ``left`` those are all.
        """
        process = self.database.run(lambda connection, _: processes.named(connection.alias, name))
        if process is None:
            return

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            return claims.held_by(connection.alias, process.pk, BATCH)

        self._end_all(read, left, error, process.name)
        self.database.run(
            lambda connection, _: processes.deregister(connection.alias, process.name)
        )
        self._ended.append(process.pk)
        self._release_late_claims()
        remains.forget(ProcessLocation.of(process).journal)

    def orphaned_claims(self, patience: float = 0.0) -> None:
        """End the claims whose process is not registered.

        Of most processes it is not known how they ended. If they live, they may store an outcome
        within ``patience`` seconds; if another supervisor has seen to them, it releases by then
        what they claimed too late to start it.
        """

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            found = claims.without_process(connection.alias, BATCH)
            now = time.monotonic()
            seen = {claim[:2]: self._orphans.get(claim[:2], now) for claim in found}
            self._orphans = seen
            return [claim for claim in found if now - seen[claim[:2]] >= patience]

        self._release_late_claims()
        self.database.run(lambda connection, _: claims.discard_without_job(connection.alias))
        error = ProcessMissingError(
            "The process that had claimed this job is not registered any more."
        )
        self._end_all(read, None, error, "unknown")

    def _release_late_claims(self) -> None:
        """Release what processes have claimed whose claims had ended already."""

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            late = claims.held_by_any(connection.alias, self._ended, BATCH)
            if late:
                logger.info(
                    "Processes that have ended had claimed %d more jobs, and not started them",
                    len(late),
                    extra=about("supervisor.late_claims", jobs=len(late)),
                )
            return late

        if self._ended:
            self._end_all(read, JournalSnapshot(), ProcessMissingError(), "unknown")

    def _end_all(
        self, read: Read, left: JournalSnapshot | None, error: SteadyQueueError, worker: str
    ) -> None:
        while batch := self.database.run(read):
            done = [_done(claim, left, error, worker) for claim in batch]
            try:
                held = self._settle(done)
            except (DataError, IntegrityError):
                held = self._settle_one_by_one(batch, done, worker)
            for each in done:
                if each.outcome.job_id in held:
                    if each.error is not None:
                        logger.warning(
                            "Job %d was interrupted: %s",
                            each.outcome.job_id,
                            error,
                            extra=about(
                                "task.interrupted",
                                task_id=str(each.outcome.job_id),
                                queue=each.outcome.queue_name,
                                attempt=each.outcome.attempts,
                                status=each.outcome.ending.value,
                                error_type=type(error).__name__,
                                lost_process=worker,
                            ),
                        )
                        send(
                            task_lost,
                            type(each.backend),
                            task_result=each.result,
                            process_name=worker,
                            error=error,
                        )
                    announce(each)
            if not held:
                return  # Somebody else ends them, or nobody can: not now, in any case.

    def _settle(self, done: list[Done]) -> set[int]:
        return self.database.run(
            lambda connection, dialect: dialect.settle(connection, [each.outcome for each in done])
        )

    def _settle_one_by_one(
        self, batch: list[ClaimedJob], done: list[Done], worker: str
    ) -> set[int]:
        held: set[int] = set()
        for claim, each in zip(batch, done, strict=True):
            try:
                held |= self._settle([each])
            except (DataError, IntegrityError) as problem:
                logger.exception(
                    "The outcome of job %s is refused",
                    claim.job_id,
                    extra=about_job("task.outcome_refused", claim),
                )
                refusal = Done(outcomes.unreadable(claim, worker, claim.claimed_at, problem))
                try:
                    held |= self._settle([refusal])
                except (DataError, IntegrityError):
                    logger.exception(
                        "Job %s cannot be ended",
                        claim.job_id,
                        extra=about_job("task.not_ended", claim),
                    )
        return held


def _done(
    claim: ClaimedJob, left: JournalSnapshot | None, error: SteadyQueueError, worker: str
) -> Done:
    """Return what a claim ends with; whatever its row holds, it has to end."""
    try:
        if left is None or claim.job_id in left.running:
            return _attempt(claim, worker).failed(error, claim.claimed_at)
        ended = left.ended.get(claim.job_id)
        if ended is not None and ended.token == claim.token:
            return _attempt(claim, worker).remembered(ended)
        return Done(outcomes.released(claim))
    except Exception as problem:
        logger.exception(
            "The row of job %s is damaged", claim.job_id, extra=about_job("task.damaged", claim)
        )
        return Done(outcomes.unreadable(claim, worker, claim.claimed_at, problem))


def _attempt(claim: ClaimedJob, worker: str) -> Attempt:
    backend = own_backend(claim.backend_name)
    task = task_of(claim.task_path, claim.backend_name, claim.queue_name, claim.rank)
    attempt = Attempt(claim, task, backend, worker, claim.claimed_at)
    attempt.recall()
    return attempt
