"""The statement that settles the jobs of a worker and claims others."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import ClaimedJob, Dialect, Outcome, QueueSelector
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..base.context import ProcessContext
from ..base.database import Unavailable
from .apart import settle_apart, within_bounds
from .attempt import RunResult
from .callbacks import with_callback
from .executor import Executor
from .held_jobs import HeldJobs
from .needed_rows import locked_for
from .set_aside import SetAside

logger = get_logger("steady_queue.worker")

#: Seconds until outcomes are stored one by one again, as long as the server refuses all of them.
APART_PAUSE = 15.0
#: Outcomes that wait for a lock, one after the other, before others have their turn.
MOST_BLOCKED = 3


class Refused(Exception):
    """The database refused outcomes or claims because rows contradict each other."""


class Settlement(HeldJobs):
    """Stores the outcomes of the jobs held, and claims jobs. Main thread only."""

    def __init__(
        self, context: ProcessContext, executor: Executor, selector: QueueSelector
    ) -> None:
        super().__init__(context, executor)
        self.selector = selector
        #: Results whose outcomes are to be stored.
        self.waiting: list[RunResult] = []
        #: Those that change a row which is locked: others do not wait for it.
        self._aside = SetAside()
        #: Those that the database has refused by themselves, or that wait for a lock which nobody
        #: knows: never stored with others again.
        self._refused = SetAside()
        self._next_apart = 0.0

    def add(self, result: RunResult) -> None:
        """Queue a result for the next statement, unless whoever ran the task has settled it."""
        job_id = result.outcome.job_id
        if self.statistics is not None:
            self.arrivals[job_id] = time.monotonic()
        if result.settled is None:
            claim = self.held.get(job_id)
            self.waiting.append(result if claim is None else with_callback(result, claim))
        else:
            self.note_stored([result], {job_id} if result.settled else set())

    def recall(self) -> None:
        """Let what was set aside wait again if its rows are free, or if nothing else is left to
        store by a process that is to end; and try again to store what was refused. Raises
        ``Unavailable``."""
        is_last = self.context.stopping and not self.waiting
        if self._aside and is_last:
            self.waiting = self._aside.take()
        elif self._aside.until_due <= 0:
            locked = locked_for(self.context.database, self._aside.results)
            again = self._aside.put_locked(self._aside.take(), locked)
            self.waiting = [*again, *self.waiting]
        if self._refused and (is_last or self._refused.until_due <= 0):
            refused = self._refused.take()
            self.waiting = [*refused, *self.waiting]
            self._settle_one_by_one(refused)

    @property
    def until_recall(self) -> float:
        """Seconds until outcomes that were set aside are to be stored; infinite without any."""
        return min(self._aside.until_due, self._refused.until_due)

    def settle_and_claim(self, limit: int) -> list[ClaimedJob]:
        """Store the outcomes of the waiting results, and claim and return up to ``limit`` jobs.

        Raises ``Unavailable``, and ``Refused`` if the database rejects one of the rows.
        """
        self.waiting = self._aside.put_akin(self.waiting)
        batch = list(within_bounds(self.waiting))
        ended = self._with_heirs(batch)

        def operation(
            connection: BaseDatabaseWrapper, dialect: Dialect
        ) -> tuple[set[int], list[ClaimedJob]]:
            # In the same operation: on its own, a mere read would seem to end the outage of a
            # server that has become read-only.
            if time.monotonic() >= self.next_audit:
                self.release_unknown_claims(connection, dialect)
            return dialect.settle_and_claim(
                connection,
                ended,
                self.registration.identity,
                self.selector,
                limit,
            )

        began = time.monotonic()
        # The server may refuse all of them, or one, which is no outage.
        may_be_one = bool(batch) and began >= self._next_apart
        try:
            held, claimed = self.context.database.run(operation, optional=may_be_one)
        except Unavailable as unavailable:
            if not unavailable.lost and not unavailable.refused:
                self._put_aside(batch)
                raise
            self.note_doubt(batch)
            if not unavailable.refused or not may_be_one:
                raise
            self._next_apart = began + APART_PAUSE
            self._settle_one_by_one(batch)
            self._next_apart = 0.0
            raise Refused from unavailable
        except Exception as error:
            log_internal_error(
                logger,
                "Outcomes or claims were refused; outcomes are stored one by one",
                extra=about("worker.outcomes_refused"),
            )
            self._settle_one_by_one(batch)
            raise Refused from error
        self.waiting = self.waiting[len(batch) :]
        self._aside.note_stored(batch)
        self.note_stored(batch, held, time.monotonic() - began)
        self.held.update((claim.job_id, claim) for claim in claimed)
        return claimed

    def claim_followers(self, holders: Sequence[ClaimedJob], limit: int) -> list[ClaimedJob]:
        """Claim and return up to ``limit`` jobs to follow each of ``holders``; none if the database
        cannot now, for the holders have to start."""
        identity = self.registration.identity
        try:
            followers = self.context.database.run(
                lambda connection, dialect: dialect.claim_followers(
                    connection, identity, holders, limit
                ),
                optional=True,
            )
        except Unavailable as unavailable:
            if unavailable.lost:
                self.note_doubt()
            return []
        except Exception:
            log_internal_error(
                logger,
                "Jobs that follow others were refused",
                extra=about("worker.followers_refused"),
            )
            return []
        self.held.update((claim.job_id, claim) for claim in followers)
        self.heirs.add(followers)
        return followers

    def _with_heirs(self, batch: Sequence[RunResult]) -> Sequence[Outcome]:
        others = (*self._aside.results, *self._refused.results, *self.waiting)
        ended = [result.outcome for result in others]
        return self.heirs.named([result.outcome for result in batch], ended, self.held)

    def _settle(self, result: RunResult) -> set[int]:
        ended = self._with_heirs([result])
        return self.context.database.run(
            lambda connection, dialect: dialect.settle(connection, ended), optional=True
        )

    def _settle_one_by_one(self, batch: Sequence[RunResult]) -> None:
        """Store the first results that wait, and let none of them keep others from it. Raises
        ``Unavailable``."""
        refused: list[RunResult] = []
        blocked = 0
        try:
            for number, result in enumerate(batch):
                if blocked == MOST_BLOCKED:
                    # Those that have not been tried come first the next time.
                    refused[:0] = batch[number:]
                    del self.waiting[: len(batch) - number]
                    break
                try:
                    self._settle_apart(result)
                except Unavailable as unavailable:
                    if unavailable.refused:
                        # Of a server that refuses everything, the first outcome tells as much as
                        # all.
                        if not refused:
                            self.registration.beat()
                        refused.append(result)
                    elif unavailable.lost:
                        raise
                    elif locked := locked_for(self.context.database, [result]):
                        self._aside.put([result], locked)
                    else:
                        refused.append(result)
                        blocked += 1
                except Exception:
                    log_internal_error(
                        logger,
                        "Job %d cannot be ended; it is tried again",
                        result.outcome.job_id,
                        extra=about("task.not_ended", task_id=str(result.outcome.job_id)),
                    )
                    refused.append(result)
                self.waiting.pop(0)
        finally:
            self._refused.put(refused)

    def _settle_apart(self, result: RunResult) -> None:
        claim = self.held.get(result.outcome.job_id)
        if claim is None:
            stored, held = result, self._settle(result)
        else:
            stored, held = settle_apart(result, claim, self.executor.worker, self._settle)
        self.note_stored([stored], held)

    def _put_aside(self, batch: Sequence[RunResult]) -> None:
        """Set aside the results of a batch that wait for a lock."""
        rest = list(self.waiting[len(batch) :])
        locked = locked_for(self.context.database, batch)
        if locked:
            self.waiting = [*self._aside.put_locked(batch, locked), *rest]
        elif self.context.database.dialect.info.skips_locked:
            # It is a row that nobody has looked for, or it is free by now.
            self._settle_one_by_one(batch)
        else:
            self.waiting = [*self._aside.put_sharing(batch), *rest]
