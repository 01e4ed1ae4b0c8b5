"""A worker's claims and the outcomes that end them, on their way to the database."""

from __future__ import annotations

import time

from django.db import DataError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import ClaimedJob, Dialect, QueueSelector
from ...logging import about, get_logger
from ...models import claims
from ..base.context import ProcessContext
from ..base.database import Unavailable
from ..base.registration import ProcessRegistration
from . import outcomes
from .attempt import Done
from .executor import Executor
from .signal_sender import SignalSender

logger = get_logger("steady_queue.worker")

#: Most claims that are given back at once.
MOST_UNKNOWN = 1000


class Refused(Exception):
    """The database refused to store or to claim something: rows are at odds with each other."""


class Settlement:
    """Knows which jobs the worker holds. One statement stores the outcomes that have gathered and
    claims the next jobs. Used by the worker's main thread only."""

    def __init__(
        self, context: ProcessContext, executor: Executor, selector: QueueSelector
    ) -> None:
        self.context, self.executor, self.selector = context, executor, selector
        self.registration: ProcessRegistration
        self.signal_sender = SignalSender(context.waiter.wake)
        #: Claims whose outcome is not stored, by job.
        self.held: dict[int, ClaimedJob] = {}
        #: Outcomes to be stored.
        self.waiting: list[Done] = []
        #: Claims of which a lost connection left open whether their outcome was stored.
        self._doubtful: set[tuple[int, int]] = set()
        #: When to look for claims that we do not know of.
        self._next_audit = time.monotonic() + self._audit_interval

    def add(self, done: Done) -> None:
        """Have an outcome stored by the next exchange."""
        self.waiting.append(done)

    def exchange(self, limit: int) -> list[ClaimedJob]:
        """Store the outcomes that wait, and claim up to ``limit`` jobs; return those.

        Raises ``Unavailable``, and ``Refused`` when nothing was claimed for other reasons.
        """
        batch = self.waiting

        def operation(
            connection: BaseDatabaseWrapper, dialect: Dialect
        ) -> tuple[set[int], list[ClaimedJob]]:
            # Part of it, since one that can only read would otherwise seem to end an outage.
            if time.monotonic() >= self._next_audit:
                self._release_unknown_claims(connection, dialect)
            given = [done.outcome for done in batch]
            return dialect.settle_and_claim(
                connection, given, self.registration.identity, self.selector, limit
            )

        try:
            held, claimed = self.context.database.run(operation)
        except Unavailable as unavailable:
            if unavailable.lost:
                self._doubtful |= {_claim_of(done) for done in batch}
                self._next_audit = 0.0
            raise
        except (DataError, IntegrityError) as error:
            logger.exception(
                "Outcomes or claims were refused; outcomes are stored one by one",
                extra=about("worker.outcomes_refused"),
            )
            self._settle_one_by_one()
            raise Refused from error
        self.waiting = []
        self._settled(batch, held)
        self.held.update((claim.job_id, claim) for claim in claimed)
        return claimed

    def _settle(self, batch: list[Done]) -> set[int]:
        return self.context.database.run(
            lambda connection, dialect: dialect.settle(connection, [done.outcome for done in batch])
        )

    def _settle_one_by_one(self) -> None:
        """Find the outcome that the database refuses, and store a refusal in its place."""
        while self.waiting:
            done = self.waiting[0]
            try:
                held = self._settle([done])
            except (DataError, IntegrityError) as error:
                done = self.executor.broken(self.held[done.outcome.job_id], error)
                held = self._settle([done])
            self._settled([done], held)
            self.waiting.pop(0)

    def _settled(self, batch: list[Done], held: set[int]) -> None:
        stored = []
        for done in batch:
            job_id, token = _claim_of(done)
            claim = self.held.get(job_id)
            # After a restore of the database the job of this id may be another, and ours as well.
            if claim is not None and claim.token == token:
                del self.held[job_id]
            self.context.journal.clear(job_id, token)
            doubtful = _claim_of(done) in self._doubtful and self.registration.holds_lease
            if job_id in held or doubtful:
                stored.append(done)
            else:
                logger.warning(
                    "The claim of job %d (token %d) was lost: its outcome, %s, is not recorded",
                    job_id,
                    token,
                    done.outcome.ending.value,
                    extra=about(
                        "task.outcome_lost",
                        task_id=str(job_id),
                        queue=done.outcome.queue_name,
                        status=done.outcome.ending.value,
                    ),
                )
        self._doubtful.difference_update(map(_claim_of, batch))
        if stored:
            self.signal_sender.tell(stored)

    def _release_unknown_claims(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
        """Give back what a claim took whose answer never reached us. It may take it long after
        its connection was lost: where the server hung, or a pooler was between us."""
        process_id = self.registration.process_id
        unknown = claims.held_by(connection.alias, process_id, MOST_UNKNOWN, known=self.held)
        if unknown:
            dialect.settle(connection, [outcomes.released(claim) for claim in unknown])
        self._next_audit = time.monotonic() + self._audit_interval

    @property
    def _audit_interval(self) -> float:
        return self.context.options.process_heartbeat_interval.total_seconds()


def _claim_of(done: Done) -> tuple[int, int]:
    return done.outcome.job_id, done.outcome.token
