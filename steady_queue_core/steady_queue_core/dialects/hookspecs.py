"""The hooks that a dialect plugin implements.

Steady Queue picks one plugin per database and calls the hooks of that plugin only, so an
implementation never has to check which database it was given. It may leave out arguments that it
does not use. ``connection`` belongs to the calling thread and must not be kept.

A plugin is a module that assigns functions to the names of the hooks. This one relies on the
portable building blocks::

    from steady_queue_core.dialects import DialectInfo, hookimpl, portable

    from . import listing

    @hookimpl
    def steady_queue_dialect(connection):
        if connection.vendor == "cockroachdb":
            return DialectInfo(
                name="cockroach", display_name="CockroachDB", api_version=3
            )

    steady_queue_claim = hookimpl(portable.claim)
    steady_queue_list_queues = hookimpl(listing.list_queues)
    ...  # the other required hooks

Import modules into it, not functions: ``hookimpl`` marks the function itself, and a marked function
in the module would be taken for a hook under its own name too.

Every operation that writes is a transaction of its own, or part of the caller's if the connection
is in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import pluggy
from django.core.checks import CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model, QuerySet

from .held_rows import CheckpointChange, StepRecord
from .observation import Observation
from .outcome import Outcome
from .queue_selector import QueueSelector
from .records import (
    Arrival,
    ClaimedJob,
    DialectInfo,
    Dispatched,
    EnqueuedJob,
    NewJob,
    ProcessIdentity,
    TurnKey,
    TurnRow,
    Wakeup,
)

# Specifications have no body, whatever they return: hence "empty-body" below.

M = TypeVar("M", bound=Model)

PROJECT_NAME = "steady_queue"

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)

#: The hooks that a dialect may leave out.
OPTIONAL = frozenset(
    {
        "steady_queue_limit_silence",
        "steady_queue_prepare",
        "steady_queue_share",
        "steady_queue_sees_past",
        "steady_queue_was_replaced",
        "steady_queue_settle_and_claim",
        "steady_queue_settle_members",
        "steady_queue_claim_followers",
        "steady_queue_save_checkpoint",
        "steady_queue_save_step",
        "steady_queue_take_turn",
        "steady_queue_lock_turns",
        "steady_queue_save_turns",
        "steady_queue_count_ready",
        "steady_queue_exact_collation",
        "steady_queue_tune_tables",
        "steady_queue_wakeup",
        "steady_queue_ring",
        "steady_queue_checks",
        "steady_queue_examine",
    }
)


# --- selection -------------------------------------------------------------------------------


@hookspec
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    """Describe this dialect if it drives ``connection``; otherwise return ``None``.

    Called once per database and process. Check ``connection.vendor`` first, and run no queries:
    the database may be unavailable. Raise ``DialectUnsupported`` for a version that is too old.
    """


@hookspec(firstresult=True)
def steady_queue_limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Make ``connection`` fail when the server does not answer for ``seconds``.

    Optional. Called before the connection is opened, by control threads, which retry by themselves.
    ``connection.settings_dict`` and its ``OPTIONS`` are a copy for that thread, to be modified;
    options that the project has set must be kept. Connecting, and every statement, then fails after
    that time with an error that ``steady_queue_is_lost_connection`` recognises, whether the network
    is down or the server is frozen. It may take longer where a statement may wait for locks.
    """


@hookspec(firstresult=True)
def steady_queue_prepare(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, impatient: bool
) -> list[str]:
    """Set up ``connection`` for a queue process; return short sentences about what was changed.

    Optional. Called when a queue process, or one of its threads, has opened the connection.
    ``impatient`` is true for control threads, which retry by themselves and should not wait for
    locks longer than a few seconds; it is false for threads that run tasks. The supervisor shows
    the sentences once, in its banner. Return ``[]`` if nothing was changed.
    """


@hookspec(firstresult=True)
def steady_queue_share(connection: BaseDatabaseWrapper) -> None:
    """Set up the project's own ``connection`` so that it works well next to the queue's.

    Optional. Called in every process of the project after a connection to a database that holds a
    queue is opened. It may be called several times for the same object.
    """


# --- transactions and locks ------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_transaction(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper,
) -> AbstractContextManager[None]:
    """Return a context manager for a transaction of the queue.

    It joins the caller's transaction if there is one. Otherwise it begins one in the mode in which
    the queue's statements are safe on this database, commits at the end, and rolls back on error.
    """


@hookspec(firstresult=True)
def steady_queue_lock_rows(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, rows: QuerySet[M], wait: bool
) -> QuerySet[M]:
    """Return the queryset ``rows`` with row locks, taken when it is evaluated.

    Rows that are locked by another transaction are skipped if ``wait`` is false, and waited for if
    it is true. If transactions lock the whole database, return ``rows`` unchanged. Called inside a
    transaction only.
    """


@hookspec(firstresult=True)
def steady_queue_sees_past(connection: BaseDatabaseWrapper) -> bool:  # type: ignore[empty-body]
    """Optional. Return whether the current transaction goes on seeing the database as of its
    beginning, and may yet lock and change what others have changed since.

    The core then locks what it reads to decide by, which is read as of now. Without the hook, that
    is taken to be never so: transactions see what was committed before each of their statements,
    or fail when they lock what has changed. Called inside a transaction only, and runs no queries.
    """


@hookspec(firstresult=True)
def steady_queue_is_contention(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, error: BaseException
) -> bool:
    """Return whether ``error`` is a deadlock, lock time-out or busy database: worth a retry."""


@hookspec(firstresult=True)
def steady_queue_is_lost_connection(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, error: BaseException
) -> bool:
    """Return whether ``error`` means that the connection is lost and must be opened again.

    Return false for a server that answers but refuses, such as a read-only one. The connection is
    replaced then too, but the outage is not over until the refused operation succeeds.
    """


@hookspec(firstresult=True)
def steady_queue_was_replaced(connection: BaseDatabaseWrapper) -> str | None:
    """Return what has become of the database of ``connection``, if an open connection leads to one
    that others cannot find any more, or a new one would create it; else ``None``.

    Optional. Control threads ask it about once a second, with connections that are open or closed.
    Those are then closed, and opened again once nothing is returned. The text is logged, after the
    name of the database: "its file db.sqlite3 is gone". Runs no queries.
    """


# --- enqueue ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_enqueue(  # type: ignore[empty-body]
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


# --- polling ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_claim(  # type: ignore[empty-body]
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


@hookspec(firstresult=True)
def steady_queue_settle(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]
) -> set[int]:
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


@hookspec(firstresult=True)
def steady_queue_settle_and_claim(  # type: ignore[empty-body]
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


@hookspec(firstresult=True)
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


@hookspec(firstresult=True)
def steady_queue_claim_followers(  # type: ignore[empty-body]
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


@hookspec(firstresult=True)
def steady_queue_save_checkpoint(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, change: CheckpointChange
) -> bool:
    """Store what an attempt says while it runs; return whether its claim was held.

    Optional; without it, the claim is locked and the row upserted in one transaction. Nothing
    changes unless the job is claimed with the token of ``change``, now, whatever the caller's
    transaction has read before; and then no other transaction ends the claim before this one has
    ended. What ``change`` does not name stays in a row that exists. ``token`` and ``updated_at``,
    the database's time, are always set.
    """


@hookspec(firstresult=True)
def steady_queue_save_step(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, step: StepRecord
) -> bool:
    """Store a step that an attempt has taken; return whether its claim was held.

    Optional; without it, the claim is locked and the row upserted in one transaction. The claim is
    as for ``steady_queue_save_checkpoint``. A job has one row for each name; in one that exists,
    ``STEP_COLUMNS`` are replaced. ``stored_at`` is the database's time.
    """


@hookspec(firstresult=True)
def steady_queue_dispatch(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, limit: int
) -> Dispatched:
    """Move up to ``limit`` scheduled jobs that are due to ready, earliest first.

    Rows that another dispatcher has locked are skipped. The result also tells when the next job is
    due: in 0 seconds if one is due already. Jobs with a limit are blocked, and admitted if there
    are permits. A job that is not admitted, has never run and must not wait is deleted, and
    ``portable.end_discarded`` called with its metadata in the same transaction, one that Django
    knows of: it may be a member of a batch, which ends then.
    """


# --- turns -----------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_take_turn(connection: BaseDatabaseWrapper, arrival: Arrival) -> None:
    """Give its turn to a job of a fair queue that this transaction has just enqueued.

    Optional; without it, the core gives turns in several statements, as it does to many jobs at
    once. The row of ``arrival.key``, in the rank of its queue, says which turn is its next one. It
    is locked, or created, and moves up to the turn that the queue has reached, if that is later:
    the first one of the ready jobs in the rank of the queue, this one among them. The job takes
    that turn; if it equals the id of the job, 0.001 more. The next one is later by 1 / weight: the
    weight of the key in the table of shares, if that is from 1 to 1,000, or else the default one.
    A turn of a row that is not from 0 to 2**53 counts as 0.
    """


@hookspec(firstresult=True)
def steady_queue_lock_turns(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, keys: Sequence[TurnKey]
) -> dict[TurnKey, TurnRow]:
    """Lock the rows of keys of fair queues in the order given, and create those that are missing,
    with the turn 0; return them.

    Optional; without it, the core upserts the rows, and locks them. A dialect needs it where that
    would lock more than these rows, such as the gaps in which others insert theirs.
    """


@hookspec(firstresult=True)
def steady_queue_save_turns(
    connection: BaseDatabaseWrapper, rows: Mapping[TurnKey, TurnRow]
) -> None:
    """Store the next turns of keys of fair queues whose rows are locked.

    Optional; without it, the core upserts the rows.
    """


# --- permits ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:  # type: ignore[empty-body]
    """Admit blocked jobs of ``keys`` for which there are permits; return how many.

    They move from blocked to ready, in the order of (rank, id), and each gets a row in the table of
    permits. A key has as many permits as its limit, which is that of the job enqueued last; a
    missing semaphore takes it from the first job that waits. Every change of permits locks the
    semaphore's row first, several of them in the order of their keys, until the end of the
    transaction. Its ``value`` is the limit less the permits that are held, so that they need not be
    counted: below 0 while more are held. It may be wrong where others have changed permits; it is
    corrected if ``portable.FEW_PERMITS`` are held or less.
    """


# --- listing ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_list_queues(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, prefix: str
) -> list[str]:
    """Return the sorted names of the queues that have ready jobs and start with ``prefix``.

    Names compare by code point. The cost should depend on the number of queues, not of jobs.
    """


@hookspec(firstresult=True)
def steady_queue_count_ready(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, queue_name: str, limit: int
) -> int:
    """Optional. Count the ready jobs of a queue, but at most ``limit`` of them.

    Its name compares exactly. The cost should depend on what is counted, however many jobs are in
    this queue or in others. It is called before an enqueue, in the caller's transaction if there is
    one, and must not make the enqueue fail. Without it, ``portable.count_ready`` counts.
    """


# --- upserts ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_insert_if_absent(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert ``row`` unless one with the same ``unique_fields`` exists; return whether it did.

    The surrounding transaction stays usable in both cases. Other errors are raised.
    """


@hookspec(firstresult=True)
def steady_queue_upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    """Insert ``rows``, or set ``update_fields`` of those whose ``unique_fields`` exist already.

    The rows are locked until the end of the transaction, one after another in the order of
    ``rows``.
    """


# --- clock -----------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_now(connection: BaseDatabaseWrapper) -> Expression:  # type: ignore[empty-body]
    """Return an expression for the database's present time, in UTC.

    It must move on within a transaction, and be comparable to what the other hooks store: where
    times are text, it has as many digits.
    """


@hookspec(firstresult=True)
def steady_queue_exact_collation(connection: BaseDatabaseWrapper) -> str | None:
    """Return the collation that compares by code point, for names in columns of the migration.

    Optional. Return ``None`` if the default collation does. May run a query.
    """


# --- tables ----------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_tune_tables(connection: BaseDatabaseWrapper) -> list[str]:  # type: ignore[empty-body]
    """Return SQL statements that tune the tables for a queue, such as storage parameters.

    Optional. A migration executes them once, after it has created the tables. They must not change
    rows or columns, and must be repeatable. Runs no queries.
    """


# --- wake-up ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_wakeup(connection: BaseDatabaseWrapper) -> Wakeup | None:
    """Return a listener that wakes this process when jobs may be ready, or ``None`` to poll only.

    Optional. Called once by a process that waits for work.
    """


@hookspec(firstresult=True)
def steady_queue_ring(connection: BaseDatabaseWrapper, queue_names: Sequence[str]) -> None:
    """Notify listeners that ``queue_names``, or any queues if empty, may have ready jobs.

    Optional. Called after an enqueue is committed, and after jobs were dispatched or admitted. A
    notification within 5 ms of the last one of the same process may be left out. Must not raise.
    """


# --- checks ----------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_checks(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:  # type: ignore[empty-body]
    """Return Django check messages about the server and its settings. Optional; may run queries."""


@hookspec(firstresult=True)
def steady_queue_examine(connection: BaseDatabaseWrapper) -> Iterable[Observation]:  # type: ignore[empty-body]
    """Return what keeps the server from doing its work for the queue, as it is now. Optional.

    For example old transactions, bloated tables, invalid indexes, or connections that run out.
    Return nothing while all is well. Reads must be short, however large the tables are. What the
    user of the database may not read is best left to ``observed``, with which the rest goes on.
    """
