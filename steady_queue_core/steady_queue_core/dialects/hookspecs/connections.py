"""Choosing a dialect, its connections, and their transactions, locks and errors."""

# Specifications have no body, whatever they return.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet

from ..records import DialectInfo
from .markers import hookspec, optional, required

M = TypeVar("M", bound=Model)


@hookspec
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    """Describe this dialect if it drives ``connection``; otherwise return ``None``.

    Called once per database and process. Check ``connection.vendor`` first, and run no queries:
    the database may be unavailable. Raise ``DialectUnsupported`` for a version that is too old.
    """


@optional
def steady_queue_limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Make ``connection`` fail when the server does not answer for ``seconds``.

    Optional. Called before the connection is opened, by control threads, which retry by themselves.
    ``connection.settings_dict`` and its ``OPTIONS`` are a copy for that thread, to be modified;
    options that the project has set must be kept. Connecting, and every statement, then fails after
    that time with an error that ``steady_queue_is_lost_connection`` recognises, whether the network
    is down or the server is frozen. It may take longer where a statement may wait for locks.
    """


@optional
def steady_queue_prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Set up ``connection`` for a queue process; return short sentences about what was changed.

    Optional. Called when a queue process, or one of its threads, has opened the connection.
    ``impatient`` is true for control threads, which retry by themselves and should not wait for
    locks longer than a few seconds; it is false for threads that run tasks. The supervisor shows
    the sentences once, in its banner. Return ``[]`` if nothing was changed.
    """


@optional
def steady_queue_share(connection: BaseDatabaseWrapper) -> None:
    """Set up the project's own ``connection`` so that it works well next to the queue's.

    Optional. Called in every process of the project after a connection to a database that holds a
    queue is opened. It may be called several times for the same object.
    """


@required
def steady_queue_transaction(
    connection: BaseDatabaseWrapper,
) -> AbstractContextManager[None]:
    """Return a context manager for a transaction of the queue.

    It joins the caller's transaction if there is one. Otherwise it begins one in the mode in which
    the queue's statements are safe on this database, commits at the end, and rolls back on error.
    """


@required
def steady_queue_lock_rows(
    connection: BaseDatabaseWrapper, rows: QuerySet[M], wait: bool
) -> QuerySet[M]:
    """Return the queryset ``rows`` with row locks, taken when it is evaluated.

    Rows that are locked by another transaction are skipped if ``wait`` is false, and waited for if
    it is true. If transactions lock the whole database, return ``rows`` unchanged. Called inside a
    transaction only.
    """


@optional
def steady_queue_sees_past(connection: BaseDatabaseWrapper) -> bool:
    """Optional. Return whether the current transaction goes on seeing the database as of its
    beginning, and may yet lock and change what others have changed since.

    The core then locks what it reads to decide by, which is read as of now. Without the hook, that
    is taken to be never so: transactions see what was committed before each of their statements,
    or fail when they lock what has changed. Called inside a transaction only, and runs no queries.
    """


@required
def steady_queue_is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Return whether ``error`` is a deadlock, lock time-out or busy database: worth a retry."""


@required
def steady_queue_is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Return whether ``error`` means that the connection is lost and must be opened again.

    Return false for a server that answers but refuses, such as a read-only one. The connection is
    replaced then too, but the outage is not over until the refused operation succeeds.
    """


@optional
def steady_queue_was_replaced(connection: BaseDatabaseWrapper) -> str | None:
    """Return what has become of the database of ``connection``, if an open connection leads to one
    that others cannot find any more, or a new one would create it; else ``None``.

    Optional. Control threads ask it about once a second, with connections that are open or closed.
    Those are then closed, and opened again once nothing is returned. The text is logged, after the
    name of the database: "its file db.sqlite3 is gone". Runs no queries.
    """
