"""Rescues the claimed jobs of dead processes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import ClaimedJob, Dialect
from ...errors import (
    ProcessMissingError,
    StateMissingError,
    SteadyQueueError,
)
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...models import claims
from ...models import process as processes
from ...models.operations.stateless_jobs import NOBODY
from ...models.process import Process
from ..base.database import QueueDatabase, Unavailable
from ..base.journal_reader import JournalSnapshot, remove_journal
from ..base.log_context import about_job
from ..base.registration import ProcessLocation
from ..worker.apart import settle_apart
from ..worker.attempt import RunResult
from ..worker.needed_rows import locked_for, needed_by
from ..worker.signal_sender import send_signals
from .claim_results import Death, ended
from .ends import Estate, Reason, bury
from .herald import Message

logger = get_logger("steady_queue.supervisor")

#: Claims that one transaction handles.
BATCH_SIZE = 200
#: Locked claims that are waited for, one after the other, before it is tried again later.
MOST_BLOCKED = 3
#: How many rescued processes are remembered.
MAX_REMEMBERED = 100

Read = Callable[[BaseDatabaseWrapper, Dialect], list[ClaimedJob]]


class Rescuer:
    """Ends the claims of dead processes: running jobs lose the attempt, known outcomes are stored,
    all other jobs become ready again, untouched.

    Raises ``Unavailable`` during an outage. All methods are idempotent.
    """

    def __init__(
        self,
        database: QueueDatabase,
        note_lost: Callable[[ClaimedJob], object] = lambda claim: None,
        tell: Callable[[Message], object] = lambda message: message(),
    ) -> None:
        """``note_lost`` is told of each claim whose attempt was lost with its process, and ``tell``
        sends signals."""
        self.database, self._note_lost, self.tell = database, note_lost, tell
        #: Rescued processes. A claim of theirs that shows up later was never started: its
        #: statement was still running when they died.
        self.rescued: deque[int] = deque(maxlen=MAX_REMEMBERED)
        #: Claims of unregistered processes, and when each was first seen.
        self._orphans: dict[tuple[int, int], float] = {}
        #: What has become of the claims of processes whose rescue an outage has interrupted.
        self._estates: dict[str, Estate] = {}

    def rescue_process(
        self,
        name: str,
        snapshot: JournalSnapshot | None,
        error: SteadyQueueError,
        reason: Reason | None = None,
    ) -> None:
        """End the claims of the process ``name`` and delete its row.

        The jobs that it was running end with ``error``; without a ``snapshot``, all of its jobs.
        If a ``reason`` is given, it is kept, with what has become of the jobs.
        """
        process = self.database.run(lambda connection, _: processes.named(connection.alias, name))
        if process is None:
            self._estates.pop(name, None)
            return

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            return claims.held_by(connection.alias, process.pk, BATCH_SIZE)

        estate = self._estates.setdefault(name, Estate())
        self._end_all(read, snapshot, Death(process.name, str(process), error), estate)
        if self.database.run(read):
            # Nobody else knows what its journal says of them.
            raise Unavailable(0.0, lost=False, refused=True)
        self._bury(process, estate, reason)
        self._estates.pop(name, None)
        self.rescued.append(process.pk)
        self._release_late_claims()
        remove_journal(ProcessLocation.of(process).journal)

    def _bury(self, process: Process, estate: Estate, reason: Reason | None) -> None:
        """Delete the row of a process; keep why it has ended, if there is something to keep."""
        if reason is not None:
            try:
                self.database.run(
                    lambda connection, _: bury(connection.alias, process, estate, reason)
                )
                return
            except Exception as error:
                # A table or a right that is missing must not keep others from being rescued.
                if isinstance(error, Unavailable) and not error.refused:
                    raise
                log_internal_error(
                    logger,
                    "The end of %s could not be stored",
                    process.name,
                    extra=about("process.end_lost", lost_process=process.name),
                )
        self.database.run(
            lambda connection, _: processes.deregister(connection.alias, process.name)
        )

    def rescue_orphans(self, grace: float = 0.0) -> None:
        """End the claims of unregistered processes, once they are ``grace`` seconds old to us.

        How such a process ended is mostly unknown. If it lives, it may store an outcome within the
        grace; if another supervisor has rescued it, that releases its late claims by then.
        """

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            found = claims.without_process(connection.alias, BATCH_SIZE)
            now = time.monotonic()
            seen = {claim[:2]: self._orphans.get(claim[:2], now) for claim in found}
            self._orphans = seen
            return [claim for claim in found if now - seen[claim[:2]] >= grace]

        self._release_late_claims()
        self.database.run(
            lambda connection, _: claims.discard_without_job(connection.alias, BATCH_SIZE)
        )
        error = ProcessMissingError(
            "The process that had claimed this job is no longer registered."
        )
        self._end_all(read, None, Death("unknown", "an unregistered process", error), Estate())

    def rescue_stateless(self) -> None:
        """End the jobs that had no state, and are claimed by nobody now. Whether they had started
        is not known."""

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            return claims.held_by(connection.alias, NOBODY, BATCH_SIZE)

        error = StateMissingError(
            "The job had not ended, and was neither waiting nor claimed: its state was lost in the "
            "database."
        )
        self._end_all(read, None, Death("unknown", "an unknown process", error), Estate())

    def _release_late_claims(self) -> None:
        """Release claims that rescued processes have made after their rescue."""

        def read(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[ClaimedJob]:
            late = claims.held_by_any(connection.alias, self.rescued, BATCH_SIZE)
            if late:
                logger.info(
                    "Processes that have ended had claimed %d more jobs without starting them",
                    len(late),
                    extra=about("supervisor.late_claims", jobs=len(late)),
                )
            return late

        if self.rescued:
            error = ProcessMissingError("The process that had claimed this job has ended.")
            death = Death("unknown", "a process that has ended", error)
            self._end_all(read, JournalSnapshot(), death, Estate())

    def _end_all(
        self, read: Read, snapshot: JournalSnapshot | None, death: Death, estate: Estate
    ) -> None:
        while batch := self.database.run(read):
            done = [ended(claim, snapshot, death) for claim in batch]
            try:
                held = self._settle(done)
            except Unavailable as unavailable:
                if unavailable.lost and not unavailable.refused:
                    raise
                done, held = self._settle_apart(batch, done, death.worker, unavailable)
            except Exception:
                done, held = self._settle_apart(batch, done, death.worker)
            for claim, each in zip(batch, done, strict=True):
                if each.outcome.job_id in held:
                    estate.add(claim, each)
                    self.tell(partial(send_signals, each))
                    if each.lost_process is not None:
                        self._note_lost(claim)
            if not held:
                return  # Another client ends these claims, or they cannot be ended now.

    def _settle(self, done: list[RunResult]) -> set[int]:
        return self.database.run(
            lambda connection, dialect: dialect.settle(connection, [each.outcome for each in done]),
            optional=True,
        )

    def _settle_apart(
        self,
        batch: list[ClaimedJob],
        done: list[RunResult],
        worker: str,
        unavailable: Unavailable | None = None,
    ) -> tuple[list[RunResult], set[int]]:
        """Settle each by itself; return what could be stored of it, and the jobs whose claims
        held.

        Somebody may have locked some: a frozen process keeps a claim locked while its task is in a
        transaction that has stored a checkpoint. Raises ``Unavailable`` if there are no others.
        """
        held: set[int] = set()
        stored, blocked = list(done), 0
        locked = locked_for(self.database, done) if unavailable is not None else set()
        for number, (claim, each) in enumerate(zip(batch, done, strict=True)):
            if blocked == MOST_BLOCKED:
                break
            if not locked.isdisjoint(needed_by(each.outcome)):
                continue
            try:
                stored[number], own = settle_apart(each, claim, worker, self._settle_one)
                held |= own
            except Unavailable as again:
                unavailable = again
                if again.refused:
                    self.database.require_writes()
                else:
                    blocked = MOST_BLOCKED if again.lost else blocked + 1
            except Exception:
                log_internal_error(
                    logger,
                    "Job %s cannot be ended",
                    claim.job_id,
                    extra=about_job("task.not_ended", claim),
                )
        if unavailable is not None and not held:
            raise unavailable
        return stored, held

    def _settle_one(self, result: RunResult) -> set[int]:
        return self._settle([result])
