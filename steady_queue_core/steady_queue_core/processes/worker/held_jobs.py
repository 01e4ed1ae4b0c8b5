"""Jobs that a worker holds: which follow others in chains, and what is known of their ends."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import ClaimedJob, Dialect, Ending, Outcome
from ...logging import about, get_logger
from ...models import claims
from ...signals import jobs_settled
from ...statistics.collector import Collector
from ...tasks.cancellation import requested
from ..base.context import ProcessContext
from ..base.registration import ProcessRegistration
from ..base.stats_flush import store_statistics
from . import outcomes
from .attempt import RunResult
from .executor import Executor
from .signal_sender import SignalSender

logger = get_logger("steady_queue.worker")

#: Most unknown claims that are released at once.
MOST_UNKNOWN_CLAIMS = 1000


class Heirs:
    """The chains of a worker: the heir is the first job of a chain that has not been settled. It
    may run already, or wait to be settled in its turn."""

    def __init__(self) -> None:
        #: By job: the jobs of its chain whose claims are not settled, in their order.
        self._chains: dict[int, dict[int, None]] = {}

    def add(self, followers: Iterable[ClaimedJob]) -> None:
        """Note jobs that follow others, each after the job that it follows."""
        for claim in followers:
            followed = claim.follows
            assert followed is not None
            chain = self._chains.setdefault(followed, {followed: None})
            chain[claim.job_id] = None
            self._chains[claim.job_id] = chain

    def forget(self, job_id: int) -> None:
        """Note that the claim of a job is settled."""
        chain = self._chains.pop(job_id, None)
        if chain is not None:
            del chain[job_id]

    def named(
        self, outcomes: Sequence[Outcome], ended: Iterable[Outcome], held: Mapping[int, ClaimedJob]
    ) -> Sequence[Outcome]:
        """Return ``outcomes`` with their heirs, none of which is among those that have ``ended``;
        ``held``: the claims of the worker."""
        if not self._chains:
            return outcomes
        gone = {outcome.job_id for outcome in ended}
        heirs: dict[int, tuple[int, int] | None] = {}

        def heir_of(job_id: int) -> tuple[int, int] | None:
            chain = self._chains.get(job_id)
            if chain is None:
                return None
            if id(chain) not in heirs:
                heir = next((held[each] for each in chain if each not in gone), None)
                heirs[id(chain)] = None if heir is None else (heir.job_id, heir.token)
            return heirs[id(chain)]

        return [
            outcome._replace(heir=heir_of(outcome.job_id)) if outcome.ends_permit else outcome
            for outcome in outcomes
        ]


class HeldJobs:
    """Keeps track of the jobs held until their outcomes are stored. Main thread only."""

    def __init__(self, context: ProcessContext, executor: Executor) -> None:
        self.context, self.executor = context, executor
        self.registration: ProcessRegistration
        self.signal_sender = SignalSender(context.waiter.wake)
        #: Claims without a stored outcome, by job id.
        self.held: dict[int, ClaimedJob] = {}
        self.heirs = Heirs()
        self.statistics = Collector() if context.options.statistics else None
        #: When results arrived, on the monotonic clock, by job; only kept for statistics.
        self.arrivals: dict[int, float] = {}
        #: Claims whose outcome may have been stored just before a connection was lost.
        self._uncertain: set[tuple[int, int]] = set()
        #: When to look for claims in the database that the worker does not know of.
        self.next_audit = time.monotonic() + self._audit_interval

    @property
    def age(self) -> float:
        """Seconds for which the oldest claim has been held; minus infinity without one."""
        oldest = next(iter(self.held.values()), None)
        if oldest is None:
            return -math.inf
        return (self.executor.clock.now() - oldest.claimed_at).total_seconds()

    def cancelled(self) -> list[ClaimedJob]:
        """Return the jobs held that were newly marked as cancelled. Raises ``Unavailable``."""
        process_id = self.registration.process_id
        found = self.context.database.run(
            lambda connection, _: claims.cancelled(connection.alias, process_id)
        )
        new = {job_id: token for job_id, token in found if (job_id, token) not in requested}
        held = [claim for job_id in new if (claim := self.held.get(job_id)) is not None]
        return [claim for claim in held if claim.token == new[claim.job_id]]

    def note_stored(
        self, batch: list[RunResult], held: set[int], seconds: float | None = None
    ) -> None:
        """Take note of outcomes that were stored in ``seconds``, of the jobs in ``held``; those of
        others were lost with their claims. None of these jobs is held any more."""
        stored = []
        settled: list[tuple[ClaimedJob, Outcome]] = []
        now, counted = time.monotonic(), self.statistics
        instant = self.executor.clock.now().timestamp() if counted is not None else 0.0
        for result in batch:
            outcome = result.outcome
            job_id, token = outcome.job_id, outcome.token
            claim = self.held.get(job_id)
            # After the database was restored from a backup, the job of this id may be a new one
            # that this worker has claimed, too.
            if claim is not None and claim.token == token:
                del self.held[job_id]
                self.heirs.forget(job_id)
            self.context.journal.clear(job_id, token)
            arrived = self.arrivals.pop(job_id, now)
            if requested:
                requested.discard((job_id, token))
            uncertain = (job_id, token) in self._uncertain and self.registration.holds_lease
            if job_id in held or uncertain:
                stored.append(result)
                if claim is not None:
                    settled.append((claim, outcome))
                    if counted is not None:
                        # An attempt has ended when its result arrived, however late it is stored.
                        counted.add(claim, outcome, instant, instant - (now - arrived))
            else:
                _log_lost(outcome)
        if self._uncertain:
            self._uncertain.difference_update(map(_claim_of, batch))
        if stored:
            self.signal_sender.put(stored)
        if settled and jobs_settled.receivers:
            self.context.events.settled(settled, seconds)

    def note_doubt(self, batch: Sequence[RunResult] = ()) -> None:
        """Note that a connection was lost: the outcomes of a batch may have been stored before, and
        there may be claims that the worker does not know of."""
        self._uncertain |= {_claim_of(result) for result in batch}
        self.next_audit = 0.0

    def release_unknown_claims(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
        """Release jobs of a claim whose answer never arrived.

        The claim may commit long after its connection was lost, for example if the server hung or
        there was a pooler in between.
        """
        process_id = self.registration.process_id
        unknown = claims.held_by(connection.alias, process_id, MOST_UNKNOWN_CLAIMS, known=self.held)
        if unknown:
            dialect.settle(connection, [outcomes.released(claim) for claim in unknown])
        self.next_audit = time.monotonic() + self._audit_interval

    @property
    def _audit_interval(self) -> float:
        return self.context.options.process_heartbeat_interval.total_seconds()

    @property
    def until_statistics(self) -> float:
        """Seconds until counts are to be stored; infinite while there are none."""
        return math.inf if self.statistics is None else self.statistics.until_due

    def store_statistics(self, *, at_once: bool = False) -> None:
        """Store what was counted, if it is time. An outage only puts it off."""
        store_statistics(self.statistics, self.context.database, at_once=at_once)


def _log_lost(outcome: Outcome) -> None:
    """Log an outcome that is not stored, for its claim was lost."""
    # An attempt that has noticed it, or that never began, has no outcome to lose.
    known = outcome.ending is Ending.RELEASED
    logger.log(
        logging.INFO if known else logging.WARNING,
        "The claim of job %d (token %d) was lost: its outcome, %s, is not recorded",
        outcome.job_id,
        outcome.token,
        outcome.ending.value,
        extra=about(
            "task.outcome_lost",
            task_id=str(outcome.job_id),
            queue=outcome.queue_name,
            status=outcome.ending.value,
        ),
    )


def _claim_of(result: RunResult) -> tuple[int, int]:
    return result.outcome.job_id, result.outcome.token
