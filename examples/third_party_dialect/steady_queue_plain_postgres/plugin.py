"""Every hook that has to be there, in the order of the specification."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

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
    hookimpl,
    portable,
)

from . import listing


@hookimpl
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    if connection.vendor != "postgresql":
        return None
    return DialectInfo(name="plain_postgres", display_name="PostgreSQL, untuned")


@hookimpl
def steady_queue_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    return portable.transaction(connection)


@hookimpl
def steady_queue_lock_rows(
    connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool
) -> QuerySet[Any]:
    return portable.lock_rows(connection, rows, wait)


@hookimpl
def steady_queue_is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return portable.is_contention(connection, error)


@hookimpl
def steady_queue_is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return portable.is_lost_connection(connection, error)


@hookimpl
def steady_queue_enqueue(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    return portable.enqueue(connection, jobs)


@hookimpl
def steady_queue_claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    return portable.claim(connection, process, selector, limit)


@hookimpl
def steady_queue_settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    return portable.settle(connection, outcomes)


@hookimpl
def steady_queue_dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    return portable.dispatch(connection, limit)


@hookimpl
def steady_queue_admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    return portable.admit(connection, keys)


@hookimpl
def steady_queue_list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    # The one hook that is tuned.
    return listing.list_queues(connection, prefix)


@hookimpl
def steady_queue_insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    return portable.insert_if_absent(connection, row, unique_fields)


@hookimpl
def steady_queue_upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    portable.upsert(connection, rows, unique_fields, update_fields)


@hookimpl
def steady_queue_now(connection: BaseDatabaseWrapper) -> Expression:
    return portable.now(connection)


@hookimpl
def steady_queue_exact_collation(connection: BaseDatabaseWrapper) -> str | None:
    # The default of a PostgreSQL database may compare names by the rules of a language.
    return "C"
