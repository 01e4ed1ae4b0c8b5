"""The typed interface to the plugin that was picked for a database.

Models and processes call its methods; nothing outside this package uses pluggy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.core.checks import CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model, QuerySet
from django.db.transaction import on_commit

from ..errors import DialectUnsupported
from ..features.retention.period import Period
from . import apart, batches
from .contention import until_free
from .job_key import JobKey
from .joins import BatchClosed, Joins
from .membership import MemberState
from .observation import Observation
from .outcome import Outcome, limited_keys
from .portable import current_time
from .portable.checkpoints import (
    checkpoint_row,
    claim_rows,
    end_checkpoints,
    last_progress,
)
from .portable.listing import count_ready
from .portable.members import insert_members
from .portable.models import model
from .portable.permits import recount
from .portable.sequels import (
    follow_ups_of,
    periods_of,
    retentions,
    with_one_outcome_a_job,
    write_metadata,
)
from .portable.steps import begun_sleeps, end_steps, step_row
from .portable.turns import lock_turns, save_turns
from .records import (
    STEP_COLUMNS,
    Arrival,
    CheckpointChange,
    ClaimedJob,
    DialectInfo,
    Dispatched,
    EnqueuedJob,
    NewJob,
    ProcessIdentity,
    QueueSelector,
    StepRecord,
    TurnKey,
    TurnRow,
    Wakeup,
)
from .turns import Turns
from .unique_enqueue import KeyTaken, UniqueEnqueue
from .unique_keys import UniqueKeys, keys_of

if TYPE_CHECKING:
    from pluggy import HookRelay

M = TypeVar("M", bound=Model)
T = TypeVar("T")

#: The ids of the jobs whose claims were held, and the claims that were made.
Exchange = tuple[set[int], list[ClaimedJob]]

#: Of how many batches members may end in one operation of the dialect.
MOST_BATCHES = 4

#: Before each try to free the keys of jobs that are about to start, in seconds. Whoever enqueues
#: with such a key gives way for longer.
START_PAUSES = (0.0, 0.005, 0.015, 0.03)


class Dialect:
    """The operations of the queue on one database. See ``hookspecs`` for what they guarantee."""

    def __init__(self, info: DialectInfo, hooks: HookRelay, implemented: set[str]) -> None:
        self.info = info
        self._hooks = cast(Any, hooks)
        self._implemented = implemented

    def __repr__(self) -> str:
        return f"<Dialect {self.info.name}>"

    def describe(self, connection: BaseDatabaseWrapper) -> DialectInfo | None:
        """Return the facts about the dialect, or ``None`` if it does not drive ``connection``."""
        answers = self._hooks.steady_queue_dialect(connection=connection)
        return cast("DialectInfo | None", answers[0] if answers else None)

    @property
    def limits_silence(self) -> bool:
        """Whether connections can be made to fail when the server does not answer."""
        return "steady_queue_limit_silence" in self._implemented

    def limit_silence(self, connection: BaseDatabaseWrapper, seconds: float) -> None:
        if self.limits_silence:
            self._hooks.steady_queue_limit_silence(connection=connection, seconds=seconds)

    def prepare(self, connection: BaseDatabaseWrapper, *, impatient: bool = False) -> list[str]:
        changes: list[str] | None = self._hooks.steady_queue_prepare(
            connection=connection, impatient=impatient
        )
        return changes or []

    def share(self, connection: BaseDatabaseWrapper) -> None:
        if "steady_queue_share" in self._implemented:
            self._hooks.steady_queue_share(connection=connection)

    def transaction(self, connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
        return cast(
            AbstractContextManager[None],
            self._hooks.steady_queue_transaction(connection=connection),
        )

    def lock_rows(
        self, connection: BaseDatabaseWrapper, rows: QuerySet[M], *, wait: bool
    ) -> QuerySet[M]:
        return cast(
            "QuerySet[M]",
            self._hooks.steady_queue_lock_rows(connection=connection, rows=rows, wait=wait),
        )

    def sees_past(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether only locking reads of the current transaction see what others commit."""
        if "steady_queue_sees_past" not in self._implemented:
            return False
        return bool(self._hooks.steady_queue_sees_past(connection=connection))

    def is_contention(self, connection: BaseDatabaseWrapper, error: BaseException) -> bool:
        return bool(self._hooks.steady_queue_is_contention(connection=connection, error=error))

    def is_lost_connection(self, connection: BaseDatabaseWrapper, error: BaseException) -> bool:
        return bool(self._hooks.steady_queue_is_lost_connection(connection=connection, error=error))

    def was_replaced(self, connection: BaseDatabaseWrapper) -> str | None:
        """Tell what has become of the database of a connection, if others find another one."""
        if "steady_queue_was_replaced" not in self._implemented:
            return None
        return cast("str | None", self._hooks.steady_queue_was_replaced(connection=connection))

    def enqueue(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
        """Insert ``jobs``, all or none, in statements of bounded size.

        One whose unique key another job has becomes that one. Raises ``KeyTaken`` if a job is not
        to be enqueued then.
        """
        # Most jobs have neither a batch nor, in their metadata, a key.
        if all(job.metadata is None and job.batch_id is None for job in jobs):
            return self._insert(connection, jobs)
        if any(job.batch_id is not None for job in jobs):
            return self._enqueue_members(connection, jobs)
        return self._enqueue_any(connection, jobs)

    def _enqueue_any(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]:
        if any(job.metadata is not None and JobKey.read(job.metadata) for job in jobs):
            return self._enqueue_unique(connection, jobs)
        return self.insert_jobs(connection, jobs)

    def _enqueue_members(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]:
        batch_ids = {job.batch_id for job in jobs if job.batch_id is not None}

        def enqueue() -> list[EnqueuedJob] | BatchClosed:
            closed = Joins(connection, self).lock_open(batch_ids)
            return BatchClosed(closed) if closed else self._enqueue_any(connection, jobs)

        # Raised outside of the transaction: the caller's stays usable.
        enqueued = self.in_transaction(connection, enqueue)
        if isinstance(enqueued, BatchClosed):
            raise enqueued
        return enqueued

    def _enqueue_unique(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]:
        # Raised outside of the transaction: the caller's stays usable.
        enqueued = self.in_transaction(
            connection, lambda: UniqueEnqueue(connection, self, jobs).run()
        )
        if isinstance(enqueued, KeyTaken):
            raise enqueued
        return enqueued

    def insert_jobs(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]:
        """Insert ``jobs``, whatever their unique keys are, in statements of bounded size. Those of
        batches become their members, those of fair queues get their turns."""
        if all(job.batch_id is None and job.fair_key is None for job in jobs):
            return self._insert(connection, jobs)

        def insert() -> list[EnqueuedJob]:
            stored = self._insert(connection, jobs)
            insert_members(connection, jobs, stored)
            if (turns := Turns.of(connection, self)) is not None:
                turns.of_new(jobs, stored)
            return stored

        return self.in_transaction(connection, insert)

    def _insert(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
        if len(jobs) == 1 or len(split := list(batches.split(jobs))) == 1:
            return self._enqueue(connection, jobs)

        def insert() -> list[EnqueuedJob]:
            self.lock_semaphores(connection, jobs)
            return [stored for batch in split for stored in self._enqueue(connection, batch)]

        return self.in_transaction(connection, insert)

    def in_transaction(self, connection: BaseDatabaseWrapper, operation: Callable[[], T]) -> T:
        """Run ``operation`` in a transaction, and repeat it after a deadlock, unless it is part of
        the caller's."""

        def run() -> T:
            with self.transaction(connection):
                return operation()

        return until_free(connection, run, self.is_contention)

    def _enqueue(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]:
        return cast(
            "list[EnqueuedJob]", self._hooks.steady_queue_enqueue(connection=connection, jobs=jobs)
        )

    def lock_semaphores(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> None:
        """Lock the semaphores of ``jobs``, creating those that are missing, in the order of their
        keys, and admit who waits: locked batch by batch, two such enqueues would deadlock."""
        if not any(job.limit for job in jobs):
            return
        limits = batches.limits_by_key(jobs, self.current_time(connection))
        rows = [model("Semaphore")(key=key, value=0, limit=to) for key, to in limits.items()]
        for start in range(0, len(rows), batches.MOST_JOBS):
            some = rows[start : start + batches.MOST_JOBS]
            self.upsert(connection, some, ["key"], ["limit"])
        recount(connection, limits)
        self.admit(connection, list(limits))

    def claim(
        self,
        connection: BaseDatabaseWrapper,
        process: ProcessIdentity,
        selector: QueueSelector,
        limit: int,
    ) -> list[ClaimedJob]:
        self.require_exclusion(selector)
        return cast(
            "list[ClaimedJob]",
            self._hooks.steady_queue_claim(
                connection=connection, process=process, selector=selector, limit=limit
            ),
        )

    def settle(self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
        """End claims, and carry out the sequels of those that were held, in one transaction."""
        if any(outcome.has_sequel for outcome in outcomes):
            return self._settle_with_sequels(connection, outcomes)
        return self._settle(connection, outcomes)

    def _settle_with_sequels(
        self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]
    ) -> set[int]:
        held: list[Outcome] = []
        keys, ending = UniqueKeys(connection, self), keys_of(outcomes)
        with self.transaction(connection):
            keys.lock(ending)
            for part in with_one_outcome_a_job(outcomes):
                ids = self._settle(connection, part)
                held += [outcome for outcome in part if outcome.job_id in ids]
            write_metadata(connection, held)
            self.keep(connection, periods_of(held))
            self._write_checkpoints(connection, last_progress(held))
            end_checkpoints(connection, held)
            self._write_steps(connection, begun_sleeps(held))
            end_steps(connection, held)
            keys.end(held, ending)
            follow_ups = follow_ups_of(held)
            if follow_ups:
                stored = self._enqueue_follow_ups(connection, [each.job for each in follow_ups])
                for follow_up, new in zip(follow_ups, stored, strict=True):
                    follow_up.stored = new
            # After the jobs that the last one may have added to its batch.
            self._end_members(connection, held)
        if follow_ups:
            queue_names = dict.fromkeys(each.job.queue_name for each in follow_ups)
            self.ring_after_commit(connection, list(queue_names))
        return {outcome.job_id for outcome in held}

    def _end_members(self, connection: BaseDatabaseWrapper, held: Sequence[Outcome]) -> None:
        ended = {o.job_id: o.member_state for o in held if o.ends_member}
        links = [o.link for o in held if o.ends_member and o.link is not None]
        if any(link.has_dependents for link in links):
            self.end_members(connection, ended)
        elif ended:
            joins = Joins(connection, self)
            joins.end_alone(ended, {link.batch_id for link in links})
            self.ring_moved(connection, joins)

    def end_members(
        self, connection: BaseDatabaseWrapper, ended: Mapping[int, MemberState]
    ) -> None:
        """End the members of batches whose jobs have ended in the current transaction."""
        joins = Joins(connection, self)
        joins.end(ended)
        self.ring_moved(connection, joins)

    def ring_moved(self, connection: BaseDatabaseWrapper, joins: Joins) -> None:
        """Notify listeners of the jobs that were moved on."""
        if joins.queue_names:
            self.ring_after_commit(connection, list(joins.queue_names))

    def _enqueue_follow_ups(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]:
        """Insert jobs in the transaction of an outcome, where there is nobody to tell that a key is
        taken."""
        batch_ids = {job.batch_id for job in jobs if job.batch_id is not None}
        if batch_ids and (closed := Joins(connection, self).lock_open(batch_ids)):
            jobs = [replace(job, batch_id=None) if job.batch_id in closed else job for job in jobs]
        if not any(JobKey.read(job.metadata) for job in jobs):
            return self.insert_jobs(connection, jobs)
        enqueued = UniqueEnqueue(connection, self, jobs, refuses=False).run()
        assert not isinstance(enqueued, KeyTaken)
        return enqueued

    def free_started_keys(
        self, connection: BaseDatabaseWrapper, claims: Sequence[ClaimedJob]
    ) -> set[int]:
        """Free the unique keys that jobs have until they start; return the ids of those that must
        not start yet, because somebody is enqueueing with their key."""
        keys, busy = UniqueKeys(connection, self), set[int]()
        ending = [claim for claim in claims if claim.ends_key_at_start]
        for pause in START_PAUSES:
            if not ending:
                break
            time.sleep(pause)
            busy = keys.start(ending)
            ending = [claim for claim in ending if claim.job_id in busy]
        return busy

    def keep(self, connection: BaseDatabaseWrapper, periods: Mapping[int, Period]) -> None:
        """Store how long these jobs, which have just ended, are kept."""
        if periods:
            rows = retentions(periods, self.current_time(connection))
            self.upsert(connection, rows, ["job"], ["expires_at"])

    def save_checkpoint(self, connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
        """Store what an attempt says; return whether its claim was held. In the caller's
        transaction if there is one, in which nobody else can end the claim from then on."""
        if "steady_queue_save_checkpoint" in self._implemented:
            return bool(
                self._hooks.steady_queue_save_checkpoint(connection=connection, change=change)
            )
        return self._while_held(
            connection, change, lambda: self._write_checkpoints(connection, [change])
        )

    def save_step(self, connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
        """Store a step that an attempt has taken; return whether its claim was held. In the
        caller's transaction as :meth:`save_checkpoint`."""
        if "steady_queue_save_step" in self._implemented:
            return bool(self._hooks.steady_queue_save_step(connection=connection, step=step))
        return self._while_held(connection, step, lambda: self._write_steps(connection, [step]))

    def _while_held(
        self,
        connection: BaseDatabaseWrapper,
        change: CheckpointChange | StepRecord,
        write: Callable[[], None],
    ) -> bool:
        """Write what an attempt stores in one transaction with the look at its claim."""
        with self.transaction(connection):
            if not self.is_held(connection, change.job_id, change.token):
                return False
            write()
        return True

    def is_held(self, connection: BaseDatabaseWrapper, job_id: int, token: int) -> bool:
        """Return whether a claim is held. In a transaction, it stays so until the end of that."""
        rows = claim_rows(connection, job_id, token)
        if not connection.in_atomic_block and connection.get_autocommit():
            return rows.exists()
        with self.transaction(connection):
            # Locked, so that the present row is read, not that of the transaction's snapshot.
            return bool(self.lock_rows(connection, rows, wait=True))

    def _write_checkpoints(
        self, connection: BaseDatabaseWrapper, changes: Sequence[CheckpointChange]
    ) -> None:
        if changes:
            present = self.current_time(connection)
            for change in changes:
                row = checkpoint_row(change, present)
                self.upsert(connection, [row], ["job"], change.changed_columns)

    def _write_steps(self, connection: BaseDatabaseWrapper, steps: Sequence[StepRecord]) -> None:
        if steps:
            present = self.current_time(connection)
            rows = [step_row(step, present) for step in steps]
            self.upsert(connection, rows, ["job", "name"], STEP_COLUMNS)

    def _settle(self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
        turns = Turns.of(connection, self)
        if turns is None or not turns.concern(outcomes):
            return self._end_claims(connection, outcomes)
        with self.transaction(connection):
            held = self._end_claims(connection, outcomes)
            turns.of_settled([outcome for outcome in outcomes if outcome.job_id in held])
        return held

    def _end_claims(self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
        held = cast(
            "set[int]",
            self._hooks.steady_queue_settle(connection=connection, outcomes=outcomes),
        )
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
        if "steady_queue_settle_and_claim" not in self._implemented:
            return self._settle_then_claim(connection, outcomes, process, selector, limit)
        self.require_exclusion(selector)
        turns = Turns.of(connection, self)
        if turns is not None and turns.concern(outcomes):
            # A job that becomes ready has to have its turn before any is claimed.
            return self._settle_then_claim(connection, outcomes, process, selector, limit)
        if not any(outcome.has_sequel for outcome in outcomes):
            hook = self._hooks.steady_queue_settle_and_claim
            done = self._exchange(hook, connection, outcomes, process, selector, limit)
            return cast("Exchange", done)
        if self._may_end_members(outcomes):
            hook = self._hooks.steady_queue_settle_members
            done = self._exchange(hook, connection, outcomes, process, selector, limit)
            if done is not None:
                return done
        return self._settle_then_claim(connection, outcomes, process, selector, limit)

    def _settle_then_claim(
        self,
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        process: ProcessIdentity,
        selector: QueueSelector,
        limit: int,
    ) -> Exchange:
        with self.transaction(connection):
            held = self.settle(connection, outcomes)
            return held, self.claim(connection, process, selector, limit)

    def _may_end_members(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether the dialect may be able to end the members of batches as it settles."""
        if "steady_queue_settle_members" not in self._implemented:
            return False
        if len({outcome.job_id for outcome in outcomes}) < len(outcomes):
            return False  # Only one outcome of a job counts, and which one is not known yet.
        links = [each.link for each in outcomes if each.ends_member and each.link is not None]
        # Of many batches, one is likely to end, and the dialect to decline.
        return len({link.batch_id for link in links}) <= MOST_BATCHES and all(
            outcome.only_ends_member for outcome in outcomes
        )

    def _exchange(
        self,
        hook: Callable[..., Any],
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        process: ProcessIdentity,
        selector: QueueSelector,
        limit: int,
    ) -> Exchange | None:
        """Settle and claim by one hook; return what it has returned."""
        done: Exchange | None = hook(
            connection=connection, outcomes=outcomes, process=process, selector=selector,
            limit=limit,
        )  # fmt: skip
        if done is not None:
            _, claimed = done
            self._notify_admitted(connection, outcomes, claimed)
        return done

    def require_exclusion(self, selector: QueueSelector) -> None:
        """Raise ``DialectUnsupported`` if claims would ignore what ``selector`` excludes."""
        if selector.excluded and not self.info.excludes_queues:
            raise DialectUnsupported(
                f"The dialect {self.info.name!r} cannot exclude queues: name the queues of the "
                "worker instead."
            )

    @property
    def claims_followers(self) -> bool:
        """Whether ``claim_followers`` ever claims anything."""
        return "steady_queue_claim_followers" in self._implemented

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
        return cast(
            "list[ClaimedJob]",
            self._hooks.steady_queue_claim_followers(
                connection=connection, process=process, holders=holders, limit=limit
            ),
        )

    def dispatch(self, connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
        """Move due jobs to ready. A job for which somebody has locked a row, or that the database
        refuses, holds up no other."""
        joins = connection.in_atomic_block or not connection.get_autocommit()
        if limit <= 0 or joins:
            return self._dispatch_together(connection, limit)
        return apart.dispatch(connection, self, limit, self._dispatch_together)

    def _dispatch_together(self, connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
        turns = Turns.of(connection, self)
        if turns is None or limit <= 0 or not turns.any_is_due(limit):
            return self._dispatch(connection, limit)
        with self.transaction(connection):
            due = turns.lock_due(limit)
            # Due before all others, and locked by this transaction: exactly they are moved.
            dispatched = self._dispatch(connection, len(due) or limit)
            turns.of_dispatched(due)
        return dispatched

    def _dispatch(self, connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
        return cast(
            Dispatched, self._hooks.steady_queue_dispatch(connection=connection, limit=limit)
        )

    def list_queues(self, connection: BaseDatabaseWrapper, prefix: str = "") -> list[str]:
        return cast(
            "list[str]",
            self._hooks.steady_queue_list_queues(connection=connection, prefix=prefix),
        )

    def count_ready(self, connection: BaseDatabaseWrapper, queue_name: str, limit: int) -> int:
        if "steady_queue_count_ready" not in self._implemented:
            return count_ready(connection, queue_name, limit)
        counted: int = self._hooks.steady_queue_count_ready(
            connection=connection, queue_name=queue_name, limit=limit
        )
        return counted

    def insert_if_absent(
        self, connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
    ) -> bool:
        return bool(
            self._hooks.steady_queue_insert_if_absent(
                connection=connection, row=row, unique_fields=unique_fields
            )
        )

    def upsert(
        self,
        connection: BaseDatabaseWrapper,
        rows: Sequence[Model],
        unique_fields: Sequence[str],
        update_fields: Sequence[str],
    ) -> None:
        self._hooks.steady_queue_upsert(
            connection=connection,
            rows=rows,
            unique_fields=unique_fields,
            update_fields=update_fields,
        )

    def admit(
        self,
        connection: BaseDatabaseWrapper,
        keys: Sequence[str],
        moved: Collection[int] = (),
    ) -> int:
        """Admit blocked jobs; return how many. They get their turns together with the jobs that
        were ``moved`` to ready in this transaction: one after the other, two would deadlock."""
        turns = Turns.of(connection, self)
        if turns is None:
            return self._admit(connection, keys)
        with self.transaction(connection):
            admitted = self._admit(connection, keys)
            turns.of_ready(moved, keys)
        return admitted

    def _admit(self, connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
        return cast(int, self._hooks.steady_queue_admit(connection=connection, keys=keys))

    @property
    def takes_turns(self) -> bool:
        """Whether ``take_turn`` is implemented."""
        return "steady_queue_take_turn" in self._implemented

    def take_turn(self, connection: BaseDatabaseWrapper, arrival: Arrival) -> None:
        self._hooks.steady_queue_take_turn(connection=connection, arrival=arrival)

    def lock_turns(
        self, connection: BaseDatabaseWrapper, keys: Sequence[TurnKey]
    ) -> dict[TurnKey, TurnRow]:
        """Lock the rows of keys of fair queues in this order, creating those that are missing;
        return them."""
        if "steady_queue_lock_turns" not in self._implemented:
            return lock_turns(connection, keys)
        return cast(
            "dict[TurnKey, TurnRow]",
            self._hooks.steady_queue_lock_turns(connection=connection, keys=keys),
        )

    def save_turns(self, connection: BaseDatabaseWrapper, rows: Mapping[TurnKey, TurnRow]) -> None:
        """Store the next turns of keys whose rows are locked."""
        if "steady_queue_save_turns" in self._implemented:
            self._hooks.steady_queue_save_turns(connection=connection, rows=rows)
        else:
            save_turns(connection, rows)

    def now(self, connection: BaseDatabaseWrapper) -> Expression:
        return cast(Expression, self._hooks.steady_queue_now(connection=connection))

    def current_time(self, connection: BaseDatabaseWrapper) -> datetime:
        """Return the database's present time, aware, in UTC."""
        return current_time(connection, self.now(connection))

    def exact_collation(self, connection: BaseDatabaseWrapper) -> str | None:
        return cast("str | None", self._hooks.steady_queue_exact_collation(connection=connection))

    def tune_tables(self, connection: BaseDatabaseWrapper) -> list[str]:
        """Return SQL statements that tune the tables for a queue."""
        found: list[str] | None = self._hooks.steady_queue_tune_tables(connection=connection)
        return found or []

    def wakeup(self, connection: BaseDatabaseWrapper) -> Wakeup | None:
        return cast("Wakeup | None", self._hooks.steady_queue_wakeup(connection=connection))

    @property
    def rings(self) -> bool:
        """Whether ``ring`` does anything."""
        return "steady_queue_ring" in self._implemented

    def ring(self, connection: BaseDatabaseWrapper, queue_names: Sequence[str]) -> None:
        if self.rings:
            self._hooks.steady_queue_ring(connection=connection, queue_names=queue_names)

    def ring_after_commit(
        self, connection: BaseDatabaseWrapper, queue_names: Sequence[str]
    ) -> None:
        """Notify listeners when the caller's transaction commits, or now if there is none."""
        if not self.rings:
            return
        if connection.in_atomic_block:
            ring = partial(self.ring, connection, queue_names)
            on_commit(ring, using=connection.alias, robust=True)
        else:
            self.ring(connection, queue_names)

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

    def checks(self, connection: BaseDatabaseWrapper) -> list[CheckMessage]:
        found: Iterable[CheckMessage] | None = self._hooks.steady_queue_checks(
            connection=connection
        )
        return list(found or ())

    def examine(self, connection: BaseDatabaseWrapper) -> list[Observation]:
        """Return what the server suffers from; nothing from a dialect that cannot tell."""
        found: Iterable[Observation] | None = self._hooks.steady_queue_examine(
            connection=connection
        )
        return list(found or ())
