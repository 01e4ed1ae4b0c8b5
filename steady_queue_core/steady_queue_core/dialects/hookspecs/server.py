"""Tables, wake-up notifications, and what the server suffers from."""

# Specifications have no body, whatever they return.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.core.checks import CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper

from ..observation import Observation
from ..records import Wakeup
from .markers import optional


@optional
def steady_queue_tune_tables(connection: BaseDatabaseWrapper) -> list[str]:
    """Return SQL statements that tune the tables for a queue, such as storage parameters.

    Optional. A migration executes them once, after it has created the tables. They must not change
    rows or columns, and must be repeatable. Runs no queries.
    """


@optional
def steady_queue_wakeup(connection: BaseDatabaseWrapper) -> Wakeup | None:
    """Return a listener that wakes this process when jobs may be ready, or ``None`` to poll only.

    Optional. Called once by a process that waits for work.
    """


@optional
def steady_queue_ring(connection: BaseDatabaseWrapper, queue_names: Sequence[str]) -> None:
    """Notify listeners that ``queue_names``, or any queues if empty, may have ready jobs.

    Optional. Called after an enqueue is committed, and after jobs were dispatched or admitted. A
    notification within 5 ms of the last one of the same process may be left out. Must not raise.
    """


@optional
def steady_queue_checks(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    """Return Django check messages about the server and its settings. Optional; may run queries."""


@optional
def steady_queue_examine(connection: BaseDatabaseWrapper) -> Iterable[Observation]:
    """Return what keeps the server from doing its work for the queue, as it is now. Optional.

    For example old transactions, bloated tables, invalid indexes, or connections that run out.
    Return nothing while all is well. Reads must be short, however large the tables are. What the
    user of the database may not read is best left to ``observed``, with which the rest goes on.
    """
