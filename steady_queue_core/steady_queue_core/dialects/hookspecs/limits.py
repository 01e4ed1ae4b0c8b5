"""Turns of fair queues, and permits of concurrency limits."""

# Specifications have no body, whatever they return.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ..records import Arrival, TurnKey, TurnRow
from .markers import optional, required


@optional
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


@optional
def steady_queue_lock_turns(
    connection: BaseDatabaseWrapper, keys: Sequence[TurnKey]
) -> dict[TurnKey, TurnRow]:
    """Lock the rows of keys of fair queues in the order given, and create those that are missing,
    with the turn 0; return them.

    Optional; without it, the core upserts the rows, and locks them. A dialect needs it where that
    would lock more than these rows, such as the gaps in which others insert theirs.
    """


@optional
def steady_queue_save_turns(
    connection: BaseDatabaseWrapper, rows: Mapping[TurnKey, TurnRow]
) -> None:
    """Store the next turns of keys of fair queues whose rows are locked.

    Optional; without it, the core upserts the rows.
    """


@required
def steady_queue_admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    """Admit blocked jobs of ``keys`` for which there are permits; return how many.

    They move from blocked to ready, in the order of (rank, id), and each gets a row in the table of
    permits. A key has as many permits as its limit, which is that of the job enqueued last; a
    missing semaphore takes it from the first job that waits. Every change of permits locks the
    semaphore's row first, several of them in the order of their keys, until the end of the
    transaction. Its ``value`` is the limit less the permits that are held, so that they need not be
    counted: below 0 while more are held. It may be wrong where others have changed permits; it is
    corrected if ``portable.FEW_PERMITS`` are held or less.
    """
