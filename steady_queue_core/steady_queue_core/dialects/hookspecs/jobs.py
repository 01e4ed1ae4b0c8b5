"""Enqueueing, claiming, settling and dispatching jobs."""

# Specifications have no body, whatever they return.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ..held_rows import CheckpointChange, StepRecord
from ..outcome import Outcome
from ..queue_selector import QueueSelector
from ..records import ClaimedJob, Dispatched, EnqueuedJob, NewJob, ProcessIdentity
from .markers import optional, required


@required
def steady_queue_enqueue(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    """Insert ``jobs`` with their first executions; return their ids, in the same order.

    Either all jobs are inserted or none. A job that is not due yet by the database's clock is
    scheduled; the others are ready, with their ids for turns, as have all jobs that any operation
    makes ready. Ids increase in the order of ``jobs``. ``run_at`` is stored
    even if it is in the past, and so are the ``metadata`` of jobs that have any.

    A job with a limit that is due takes a permit of its key, as in ``steady_queue_admit``, and sets
    the key's limit to its own. Without a free permit it is blocked; if its limit discards such jobs
    it is not stored, and its id is ``None``.
    """


@required
def steady_queue_claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    """Claim up to ``limit`` ready jobs for a process: ready -> claimed, in one transaction.

    With ``selector.takes_all`` jobs come in the order of (rank, turn) over all queues; otherwise
    queue by queue in the order of ``selector.matching``, and by (rank, turn) in each. Queues that
    ``selector.excludes``, and paused ones, are left out. They do not change the order of the
    others, nor, however many jobs they have, the cost by much: see ``portable.Bookmarks``. Without
    ``DialectInfo.excludes_queues``, selectors exclude nothing. Jobs that another transaction has
    locked are skipped. No job is ever claimed twice. Return an empty list if there is nothing to
    claim, at the lowest possible cost: idle workers call this all the time.

    The token of a claim is greater than that of the ready row, and differs from all tokens that
    were used before the database was restored or failed over; ``portable.next_token`` makes one. A
    process that is not registered under its id and its name gets no jobs: it was pruned, or its id
    belongs to another process by now.
    """


@required
def steady_queue_settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    """End claims; return the ids of the jobs whose claims were still held.

    An outcome whose (job, token) is no longer claimed changes nothing. For the others, the ending
    decides what happens to the job (see ``Outcome`` and ``Outcome.destination``):

    * finished: the job is completed, or deleted if ``preserve`` is false;
    * failed: the job is completed with its errors, and gets a failed row, which replaces one that
      exists already; a row without the ``fingerprint`` belongs to no group of failures;
    * retried: the errors are stored, and the job is scheduled ``delay`` seconds after the
      database's present time, or ready if that is 0;
    * released: the job is ready, as before the claim.

    The execution rows that jobs move to have the claim's token. All outcomes are one transaction,
    in which the caller carries out the sequels of those whose claims were held.

    The permit of a job with a limit ends with its claim, and jobs that wait for it are admitted in
    the same transaction. A released job keeps its permit. A job that is retried at once, or has
    lost its permit, needs a new one. If the outcome names an heir whose claim is still held after
    the batch and has no permit, the permit passes to the heir instead of ending. One permit at most
    passes to an heir: of the other outcomes that name it, none has a permit.
    """


@optional
def steady_queue_settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    """Settle outcomes, then claim jobs, in one transaction.

    Optional. Without it ``steady_queue_settle`` and ``steady_queue_claim`` are called in turn, in
    ``steady_queue_transaction``.
    """


@optional
def steady_queue_settle_members(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]] | None:
    """Settle outcomes, end the members of batches whose jobs have ended, and claim up to ``limit``
    jobs, in one transaction; or change nothing, claim nothing and return ``None``.

    Optional; without it, or after ``None``, claims end first, then members, and then jobs are
    claimed, in several statements of one transaction. The outcomes have no sequels but the ends of
    members, and only batches wait for these. Of outcomes that are ``ends_member`` and whose claims
    were held, the members that are still pending get ``member_state``.

    Whoever ends the last pending member of a batch has to end the batch, which this operation
    cannot: it returns ``None`` unless it has locked, for each batch that those rows belong to,
    another row that is pending, without waiting for it. The rows that are to be ended are locked
    before that one: two transactions that locked each other's would never end.
    """


@optional
def steady_queue_claim_followers(
    connection: BaseDatabaseWrapper,
    process: ProcessIdentity,
    holders: Sequence[ClaimedJob],
    limit: int,
) -> list[ClaimedJob]:
    """Claim up to ``limit`` blocked jobs for each of ``holders``, to run after it one by one.

    Optional; without it, a blocked job is claimed when it is admitted. ``holders`` are claims of
    the process. ``chains_of`` groups them by key, and ``chained`` tells which job follows which.
    Jobs of a key come in the order of (rank, id), as far as they are in the queue of its holders: a
    job of another queue ends the chain. They move from blocked to claimed with new tokens and
    without permits, in one transaction that locks the semaphores of the keys first.

    A key gets none if a claim or a permit of its holders is lost, if more permits are out than its
    limit allows, if the queue is paused, or if another transaction has locked the semaphore: the
    holders, which have to start, wait for nobody.
    """


@optional
def steady_queue_save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Store what an attempt says while it runs; return whether its claim was held.

    Optional; without it, the claim is locked and the row upserted in one transaction. Nothing
    changes unless the job is claimed with the token of ``change``, now, whatever the caller's
    transaction has read before; and then no other transaction ends the claim before this one has
    ended. What ``change`` does not name stays in a row that exists. ``token`` and ``updated_at``,
    the database's time, are always set.
    """


@optional
def steady_queue_save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Store a step that an attempt has taken; return whether its claim was held.

    Optional; without it, the claim is locked and the row upserted in one transaction. The claim is
    as for ``steady_queue_save_checkpoint``. A job has one row for each name; in one that exists,
    ``STEP_COLUMNS`` are replaced. ``stored_at`` is the database's time.
    """


@required
def steady_queue_dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    """Move up to ``limit`` scheduled jobs that are due to ready, earliest first.

    Rows that another dispatcher has locked are skipped. The result also tells when the next job is
    due: in 0 seconds if one is due already. Jobs with a limit are blocked, and admitted if there
    are permits. A job that is not admitted, has never run and must not wait is deleted, and
    ``portable.end_discarded`` called with its metadata in the same transaction, one that Django
    knows of: it may be a member of a batch, which ends then.
    """
