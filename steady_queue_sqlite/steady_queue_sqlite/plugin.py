"""The SQLite dialect: every hook, in the order of the specification, tuned or delegated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from django.core.checks import CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model, QuerySet

from steady_queue_core.dialects import (
    ClaimedJob,
    DialectInfo,
    Dispatched,
    EnqueuedJob,
    NewJob,
    Outcome,
    ProcessIdentity,
    QueueSelector,
    Wakeup,
    hookimpl,
    portable,
)

from . import checks, locking, moves, permits, session, sharing
from .database_file import database_path
from .enqueue import enqueue
from .listing import list_queues
from .wal_watch import WalWatch, can_watch


@hookimpl
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    if connection.vendor != "sqlite":
        return None
    return DialectInfo(
        name="sqlite",
        display_name=f"SQLite {checks.require_version()}",
        skips_locked=False,
        has_wakeup=can_watch(connection),
    )


@hookimpl
def steady_queue_prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    return session.prepare(connection, impatient)


@hookimpl
def steady_queue_share(connection: BaseDatabaseWrapper) -> None:
    sharing.share(connection)


@hookimpl
def steady_queue_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    return locking.transaction(connection)


@hookimpl
def steady_queue_lock_rows(
    connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool
) -> QuerySet[Any]:
    return rows  # An immediate transaction holds the whole database.


@hookimpl
def steady_queue_is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return locking.is_contention(error)


@hookimpl
def steady_queue_is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return portable.is_lost_connection(connection, error)


@hookimpl
def steady_queue_enqueue(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    return enqueue(connection, jobs)


@hookimpl
def steady_queue_claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    return moves.claim(connection, process, selector, limit)


@hookimpl
def steady_queue_settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    return moves.settle(connection, outcomes)


@hookimpl
def steady_queue_settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    return moves.settle_and_claim(connection, outcomes, process, selector, limit)


@hookimpl
def steady_queue_dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    return moves.dispatch(connection, limit)


@hookimpl
def steady_queue_admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    return permits.admit(connection, keys)


@hookimpl
def steady_queue_list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    return list_queues(connection, prefix)


@hookimpl
def steady_queue_insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    with locking.transaction(connection):
        return portable.insert_if_absent(connection, row, unique_fields)


@hookimpl
def steady_queue_upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    with locking.transaction(connection):
        portable.upsert(connection, rows, unique_fields, update_fields)


@hookimpl
def steady_queue_now(connection: BaseDatabaseWrapper) -> Expression:
    return portable.now(connection)


@hookimpl
def steady_queue_wakeup(connection: BaseDatabaseWrapper) -> Wakeup | None:
    path = database_path(connection)
    return WalWatch.start(path) if path and can_watch(connection) else None


@hookimpl
def steady_queue_checks(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    return checks.run(connection)
