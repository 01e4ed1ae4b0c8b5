"""The typed interface to the plugin that was picked for a database.

Models and processes call its methods; nothing outside this package uses pluggy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from django.core.checks import CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper

from ..errors import DialectUnsupported
from ..features.retention.period import Period
from . import dispatching, enqueueing, hookspecs, semaphores, settling
from .exchange import Exchange, operation_for
from .joins import Joins
from .membership import MemberState
from .observation import Observation
from .operations import Operations
from .outcome import Outcome, limited_keys
from .plugin import hook
from .portable import current_time
from .portable.held_rows import is_held, save_checkpoint, save_step
from .portable.listing import count_ready
from .portable.sequels import keep
from .portable.turns import lock_turns, save_turns
from .queue_selector import QueueSelector
from .ready import Ready
from .records import ClaimedJob, DialectInfo, Dispatched, EnqueuedJob, NewJob, ProcessIdentity
from .unique_keys import UniqueKeys


class Dialect(Operations):
    """The operations of the queue on one database. Those that are not defined here are hooks: see
    ``hookspecs`` for what they, and the hooks below these operations, guarantee."""

    # What the core does where a dialect leaves it out.
    save_checkpoint = hook(hookspecs.steady_queue_save_checkpoint, save_checkpoint)
    save_step = hook(hookspecs.steady_queue_save_step, save_step)
    lock_turns = hook(hookspecs.steady_queue_lock_turns, lock_turns)
    save_turns = hook(hookspecs.steady_queue_save_turns, save_turns)
    count_ready = hook(hookspecs.steady_queue_count_ready, count_ready)

    def __repr__(self) -> str:
        return f"<Dialect {self.info.name}>"

    def describe(self, connection: BaseDatabaseWrapper) -> DialectInfo | None:
        """Return the facts about the dialect, or ``None`` if it does not drive ``connection``."""
        answers = self.hooks["steady_queue_dialect"](connection=connection)
        return answers[0] if answers else None

    def prepare(self, connection: BaseDatabaseWrapper, *, impatient: bool = False) -> list[str]:
        """Set up a connection for a queue process; return what was changed."""
        return self.set_up(connection, impatient) or []

    # --- jobs -----------------------------------------------------------------------------------

    def enqueue(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
        """Insert ``jobs``, all or none, in statements of bounded size.

        One whose unique key another job has becomes that one. Raises ``KeyTaken`` if a job is not
        to be enqueued then, and ``BatchClosed`` if its batch has ended.
        """
        # Most jobs have neither a batch nor, in their metadata, a key.
        if all(job.metadata is None and job.batch_id is None for job in jobs):
            return enqueueing.insert_plain(connection, self, jobs)
        return enqueueing.enqueue(connection, self, jobs)

    def insert_jobs(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]:
        """Insert ``jobs``, whatever their unique keys are, in statements of bounded size. Those of
        batches become their members, those of fair queues get their turns."""
        return enqueueing.insert_jobs(connection, self, jobs)

    def lock_semaphores(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> None:
        """Lock the semaphores of ``jobs``, in the order of their keys, and admit who waits."""
        semaphores.lock_semaphores(connection, self, jobs)

    def claim(
        self,
        connection: BaseDatabaseWrapper,
        process: ProcessIdentity,
        selector: QueueSelector,
        limit: int,
    ) -> list[ClaimedJob]:
        """Claim ready jobs for a process, in order."""
        self.require_exclusion(selector)
        return self.claim_ready(connection, process, selector, limit)

    def require_exclusion(self, selector: QueueSelector) -> None:
        """Raise ``DialectUnsupported`` if claims would ignore what ``selector`` excludes."""
        if selector.excluded and not self.info.excludes_queues:
            raise DialectUnsupported(
                f"The dialect {self.info.name!r} cannot exclude queues: name the queues of the "
                "worker instead."
            )

    def claim_followers(
        self,
        connection: BaseDatabaseWrapper,
        process: ProcessIdentity,
        holders: Sequence[ClaimedJob],
        limit: int,
    ) -> list[ClaimedJob]:
        """Claim the jobs that follow ``holders``, if the dialect can."""
        if limit <= 0 or not holders or not self.claims_followers:
            return []
        return self.claim_blocked(connection, process, holders, limit)

    def free_started_keys(
        self, connection: BaseDatabaseWrapper, claims: Sequence[ClaimedJob]
    ) -> set[int]:
        """Free the unique keys that jobs have until they start; return the ids of those that must
        not start yet, because somebody is enqueueing with their key."""
        return UniqueKeys(connection, self).free_started(claims)

    def settle(self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
        """End claims, and carry out the sequels of those that were held, in one transaction."""
        if any(outcome.has_sequel for outcome in outcomes):
            return settling.settle(connection, self, outcomes)
        return self.end_claims(connection, outcomes)

    def end_claims(self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
        """End claims, in one transaction with what follows for the jobs that are ready then."""
        ready = Ready(connection, self)
        if not ready.concerns(outcomes):
            return self._end_claims(connection, outcomes)
        with self.transaction(connection):
            held = self._end_claims(connection, outcomes)
            ready.settled([outcome for outcome in outcomes if outcome.job_id in held])
        return held

    def _end_claims(self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
        held = self.end_held(connection, outcomes)
        self._notify_admitted(connection, outcomes, [])
        return held

    def settle_and_claim(
        self,
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        process: ProcessIdentity,
        selector: QueueSelector,
        limit: int,
    ) -> Exchange:
        """Settle, then claim, in one transaction."""
        if not outcomes:
            return set(), self.claim(connection, process, selector, limit)
        if limit <= 0:
            return self.settle(connection, outcomes), []
        self.require_exclusion(selector)
        if exchange := operation_for(connection, self, outcomes):
            done = exchange(connection, outcomes, process, selector, limit)
            if done is not None:
                self._notify_admitted(connection, outcomes, done[1])
                return done
        with self.transaction(connection):
            held = self.settle(connection, outcomes)
            return held, self.claim(connection, process, selector, limit)

    def dispatch(self, connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
        """Move due jobs to ready. A job for which somebody has locked a row, or that the database
        refuses, holds up no other."""
        return dispatching.dispatch(connection, self, limit)

    def admit(
        self,
        connection: BaseDatabaseWrapper,
        keys: Sequence[str],
        moved: Collection[int] = (),
    ) -> int:
        """Admit blocked jobs; return how many. They get their turns together with the jobs that
        were ``moved`` to ready in this transaction: one after the other, two would deadlock."""
        ready = Ready(connection, self)
        if not ready.matters:
            return self.admit_blocked(connection, keys)
        with self.transaction(connection):
            admitted = self.admit_blocked(connection, keys)
            ready.moved(moved, keys)
        return admitted

    # --- what belongs to jobs -------------------------------------------------------------------

    def is_held(self, connection: BaseDatabaseWrapper, job_id: int, token: int) -> bool:
        """Return whether a claim is held. In a transaction, it stays so until the end of that."""
        return is_held(connection, job_id, token)

    def keep(self, connection: BaseDatabaseWrapper, periods: Mapping[int, Period]) -> None:
        """Store how long these jobs, which have just ended, are kept."""
        keep(connection, periods)

    def end_members(
        self, connection: BaseDatabaseWrapper, ended: Mapping[int, MemberState]
    ) -> None:
        """End the members of batches whose jobs have ended in the current transaction."""
        joins = Joins(connection, self)
        joins.end(ended)
        joins.ring()

    # --- the database ---------------------------------------------------------------------------

    def list_queues(self, connection: BaseDatabaseWrapper, prefix: str = "") -> list[str]:
        """Return the names of the queues that have ready jobs and start with ``prefix``."""
        return self.queues_with(connection, prefix)

    def current_time(self, connection: BaseDatabaseWrapper) -> datetime:
        """Return the database's present time, aware, in UTC."""
        return current_time(connection, self.now(connection))

    def tune_tables(self, connection: BaseDatabaseWrapper) -> list[str]:
        """Return SQL statements that tune the tables for a queue."""
        return self.table_options(connection) or []

    def checks(self, connection: BaseDatabaseWrapper) -> list[CheckMessage]:
        """Return what the dialect's system checks have found."""
        return list(self.findings(connection) or ())

    def examine(self, connection: BaseDatabaseWrapper) -> list[Observation]:
        """Return what the server suffers from; nothing from a dialect that cannot tell."""
        return list(self.observations(connection) or ())

    def _notify_admitted(
        self,
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        claimed: Sequence[ClaimedJob],
    ) -> None:
        """Notify listeners of jobs that were admitted, unless all of them were claimed here."""
        # A permit that passes to an heir admits nobody.
        ended = limited_keys(outcome for outcome in outcomes if outcome.heir is None)
        if ended - {claim.concurrency_key for claim in claimed}:
            self.ring_after_commit(connection, [])
