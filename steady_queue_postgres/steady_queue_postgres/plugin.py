"""The PostgreSQL dialect: every hook, in the order of the specification, tuned or delegated."""

from __future__ import annotations

import select
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

from . import checks, errors, forks, permits, pooler, session, storage
from .bell import Bell
from .claim import claim, settle_and_claim
from .dispatch import dispatch
from .enqueue import enqueue
from .listing import list_queues
from .ring import ring
from .settle import settle
from .silence import limit_silence
from .transactions import transaction
from .upserts import insert_if_absent


@hookimpl
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    if connection.vendor != "postgresql":
        return None
    # Without a query nothing is known of a pooler but what the project says.
    return DialectInfo(
        name="postgres",
        display_name="PostgreSQL",
        has_wakeup=hasattr(select, "poll") and not pooler.is_declared(connection),
    )


@hookimpl
def steady_queue_limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    limit_silence(connection, seconds)


@hookimpl
def steady_queue_prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    return session.prepare(connection, impatient)


@hookimpl
def steady_queue_share(connection: BaseDatabaseWrapper) -> None:
    forks.part_in_children(connection)
    session.prepare_nothing_behind_pooler(connection)


@hookimpl
def steady_queue_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    return transaction(connection)


@hookimpl
def steady_queue_lock_rows(
    connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool
) -> QuerySet[Any]:
    return portable.lock_rows(connection, rows, wait)


@hookimpl
def steady_queue_is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return errors.is_contention(error)


@hookimpl
def steady_queue_is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return errors.is_lost_connection(error)


@hookimpl
def steady_queue_enqueue(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    return enqueue(connection, jobs)


@hookimpl
def steady_queue_claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    return claim(connection, process, selector, limit)


@hookimpl
def steady_queue_settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    return settle(connection, outcomes)


@hookimpl
def steady_queue_settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    return settle_and_claim(connection, outcomes, process, selector, limit)


@hookimpl
def steady_queue_dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    return dispatch(connection, limit)


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
    return insert_if_absent(connection, row, unique_fields)


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
    return "C"


@hookimpl
def steady_queue_tune_tables(connection: BaseDatabaseWrapper) -> list[str]:
    return storage.statements()


@hookimpl
def steady_queue_wakeup(connection: BaseDatabaseWrapper) -> Wakeup | None:
    if not hasattr(select, "poll") or pooler.is_pooled(connection):
        return None
    return Bell(connection)


@hookimpl
def steady_queue_ring(connection: BaseDatabaseWrapper) -> None:
    ring(connection)


@hookimpl
def steady_queue_checks(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    return checks.run(connection)
