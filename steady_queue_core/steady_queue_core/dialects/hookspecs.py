"""The hooks that a dialect plugin implements.

Steady Queue picks one plugin for each database and calls the operation hooks on that plugin
alone: an implementation never needs to test which database it was given. Take only the arguments
you use. ``connection`` belongs to the calling thread: do not keep it. A whole plugin that relies
on the portable building blocks::

    from steady_queue_core.dialects import DialectInfo, hookimpl, portable

    @hookimpl
    def steady_queue_dialect(connection):
        if connection.vendor == "cockroachdb":
            return DialectInfo(name="cockroach", display_name="CockroachDB")

    @hookimpl
    def steady_queue_claim(connection, process, selector, limit):
        return portable.claim(connection, process, selector, limit)

    ...  # the other required hooks, each delegated in one line or tuned

Every operation that writes is one transaction of its own, or part of the caller's when the
connection is in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pluggy
from django.core.checks import CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model, QuerySet

from .outcome import Outcome
from .records import (
    ClaimedJob,
    DialectInfo,
    Dispatched,
    EnqueuedJob,
    NewJob,
    ProcessIdentity,
    QueueSelector,
    Wakeup,
)

# A specification has no body, whatever an implementation returns: hence "empty-body" below.

PROJECT_NAME = "steady_queue"

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)

#: Hooks that a dialect may leave out.
OPTIONAL = frozenset(
    {
        "steady_queue_limit_silence",
        "steady_queue_prepare",
        "steady_queue_share",
        "steady_queue_settle_and_claim",
        "steady_queue_exact_collation",
        "steady_queue_tune_tables",
        "steady_queue_wakeup",
        "steady_queue_ring",
        "steady_queue_checks",
    }
)


# --- selection -------------------------------------------------------------------------------


@hookspec
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    """Describe this dialect if it drives ``connection``; otherwise return ``None``.

    Called once per database and process. Look at ``connection.vendor`` first, and run no query:
    the database may be away. Raise ``DialectUnsupported`` for a version too old.
    """


@hookspec(firstresult=True)
def steady_queue_limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Have ``connection`` give up on a server that does not answer for ``seconds``.

    Optional. Called before the connection is opened, by a thread that looks after others and tries
    again by itself. ``connection.settings_dict`` and its ``OPTIONS`` are a copy of that thread's
    own, to be changed; what the project has set there stands. Opening the connection, and each
    statement, then end after so long with an error that ``steady_queue_is_lost_connection``
    recognises, whether the network is gone or the server has frozen. It may be somewhat longer
    where a statement may wait for locks that long.
    """


@hookspec(firstresult=True)
def steady_queue_prepare(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, impatient: bool
) -> list[str]:
    """Set up ``connection`` for a queue process; say in short sentences what was changed.

    Optional. Called when a queue process, or a thread of it, has opened the connection.
    ``impatient``: its thread looks after others and tries again by itself, so that it should wait
    for locks no longer than a few seconds; otherwise it runs tasks. The sentences are shown once,
    in the supervisor's banner; return ``[]`` when nothing was changed.
    """


@hookspec(firstresult=True)
def steady_queue_share(connection: BaseDatabaseWrapper) -> None:
    """Make the project's own use of ``connection`` get along with the queue's.

    Optional. Called in every process of the project when a connection to a database that holds a
    queue was opened, also again for the same object.
    """


# --- transactions and locks ------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_transaction(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper,
) -> AbstractContextManager[None]:
    """Return a context manager: a transaction for the queue's own writes.

    Joins the caller's transaction when there is one. Otherwise begins one in the mode in which
    the queue's statements are safe on this database, commits at the end, and rolls back on error.
    """


@hookspec(firstresult=True)
def steady_queue_lock_rows(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool
) -> QuerySet[Any]:
    """Return ``rows`` with this database's row lock applied when they are read.

    ``wait=False`` passes over rows that are locked, ``wait=True`` waits for them. A database
    whose transactions lock as a whole returns ``rows`` as they are. Inside a transaction only.
    """


@hookspec(firstresult=True)
def steady_queue_is_contention(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, error: BaseException
) -> bool:
    """Say whether ``error`` is a deadlock, lock time-out or busy database: worth another try."""


@hookspec(firstresult=True)
def steady_queue_is_lost_connection(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, error: BaseException
) -> bool:
    """Say whether ``error`` means that the connection is gone and a new one should be opened.

    Not of a server that answers and refuses, such as one that only reads: the connection is
    replaced then, too, but that reading works does not end the outage.
    """


# --- enqueue ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_enqueue(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    """Insert ``jobs`` with their first executions; return their ids in the order given.

    All or none are inserted. A job that is not due by the database's clock is scheduled, any
    other is ready. Ids grow in the order given. ``run_at`` is kept, also where it is past.

    A job with a limit that is due takes a permit of its key, as ``steady_queue_admit`` gives them,
    by the limit that it states. If there is none left it is blocked, or it is not there: its id
    is ``None``.
    """


# --- polling ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_claim(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    """Take up to ``limit`` ready jobs for a process: ready -> claimed, in one transaction.

    Order: with ``selector.takes_all`` by (rank, id) over all queues; otherwise queue by queue in
    the order of ``selector.matching``, in each by (rank, id). Paused queues are left out: they
    change neither the order of the others nor, however many jobs they have, much of the cost (see
    ``portable.Bookmarks``). Jobs that another transaction holds are passed over. No job is ever
    given twice. Return an empty list when there is nothing to take, at the lowest cost the database
    allows: an idle worker calls this all the time.

    The claim's token is greater than the ready row's, and no earlier life of the database, before
    it was restored or failed over, has given it out: ``portable.next_token`` makes one. A process
    that is not registered by its id and its name gets nothing: its lease was taken away, or its id
    is somebody else's by now.
    """


@hookspec(firstresult=True)
def steady_queue_settle(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]
) -> set[int]:
    """End claims; return the ids of the jobs whose claim was still held.

    An outcome whose (job, token) is not claimed any more changes nothing. Finished: the job row
    is completed, or deleted where ``preserve`` is false. Failed: completed with its errors, and a
    failed row in place of one that is there. Retried: errors are kept, and the job is scheduled
    ``delay`` seconds after the database's present time, or ready when that is 0. Released: ready as
    before. Rows that the job moves to carry the claim's token. All outcomes are one transaction.

    The permit of a job with a limit ends with the claim, and the jobs that wait for it are admitted
    in the same transaction. A job that is released keeps it; one that is retried at once takes one
    anew, and so does one that has lost it.
    """


@hookspec(firstresult=True)
def steady_queue_settle_and_claim(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    """Do ``steady_queue_settle`` and ``steady_queue_claim`` in one transaction.

    Optional: without it the two are called one after the other.
    """


@hookspec(firstresult=True)
def steady_queue_dispatch(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, limit: int
) -> Dispatched:
    """Move up to ``limit`` scheduled jobs that are due to ready, earliest first.

    Rows that another dispatcher holds are passed over. Also say when the next one is due: in 0
    seconds if it is already. Jobs with a limit are blocked, and admitted if they can be; one that
    cannot be, has never run and is not to wait is deleted.
    """


# --- permits ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:  # type: ignore[empty-body]
    """Let in the jobs that wait for ``keys`` and for which there are permits; return how many.

    They move from blocked to ready, and a row in the table of permits says which key they hold. A
    key's limit is that of the job that was enqueued last. For each key as many hold a permit, in
    the order of (rank, id), as the limit allows. The semaphore's row, locked until the end of the
    transaction, is what all who take or end permits of the key wait for, sorted by key. Its
    ``value`` is the number of permits left, at least 0.
    """


# --- distinct-queue listing ------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_list_queues(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, prefix: str
) -> list[str]:
    """Return the names of the queues that have ready jobs and start with ``prefix``, sorted.

    Names compare exactly, by code point. The cost should grow with the queues, not the rows.
    """


# --- upserts ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_insert_if_absent(  # type: ignore[empty-body]
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert ``row`` unless one with the same ``unique_fields`` exists; say whether it was.

    Leaves the surrounding transaction usable in both cases. Other errors are raised.
    """


@hookspec(firstresult=True)
def steady_queue_upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    """Insert ``rows``; where ``unique_fields`` already exist, set ``update_fields``.

    The rows are locked until the end of the transaction, one after the other in the order given.
    """


# --- clock -----------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_now(connection: BaseDatabaseWrapper) -> Expression:  # type: ignore[empty-body]
    """Return an expression for the database's own present time in UTC.

    It must move on within a transaction, and compare with what the other hooks store: where
    instants are text, it has as many digits as they have.
    """


@hookspec(firstresult=True)
def steady_queue_exact_collation(connection: BaseDatabaseWrapper) -> str | None:
    """Name the collation under which names compare by code point, for columns of the migration.

    Optional; ``None`` where the default already does. May run a query.
    """


# --- tables ----------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_tune_tables(connection: BaseDatabaseWrapper) -> list[str]:  # type: ignore[empty-body]
    """Return statements that make the tables fit for a queue, such as how they are cleaned.

    Optional. A migration runs them once, after the tables were made. They change no content and
    no column, and may be run again. Runs no query.
    """


# --- wake-up ---------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_wakeup(connection: BaseDatabaseWrapper) -> Wakeup | None:
    """Return a bell that rings when jobs may have become ready, or ``None``: then polling rules.

    Optional. Called once by a process that waits for work.
    """


@hookspec(firstresult=True)
def steady_queue_ring(connection: BaseDatabaseWrapper, queue_names: Sequence[str]) -> None:
    """Ring the bell for ``queue_names``; without names, for whichever queues there are.

    Optional. Called after the commit of an enqueue, and when jobs have become due. It may leave
    out a ring that follows another of the same process within 5 ms. Never raises.
    """


# --- checks ----------------------------------------------------------------------------------


@hookspec(firstresult=True)
def steady_queue_checks(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:  # type: ignore[empty-body]
    """Return Django check messages about this server's settings. Optional; may query."""
