"""The MySQL and MariaDB dialect: every hook, in the order of the specification."""

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

from . import bell, checks, claim, conversation, errors, permits, session, settle, upserts
from .clock import UtcNow
from .dispatch import dispatch
from .enqueue import enqueue
from .listing import list_queues
from .server import server_of
from .silence import limit_silence


@hookimpl
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    if connection.vendor != "mysql":
        return None
    # Which of the two it is, and of which version, the server says when it is first asked.
    return DialectInfo(name="mysql", display_name="MySQL or MariaDB", has_wakeup=True)


@hookimpl
def steady_queue_limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    limit_silence(connection, seconds)


@hookimpl
def steady_queue_prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    return session.prepare(connection, impatient)


@hookimpl
def steady_queue_share(connection: BaseDatabaseWrapper) -> None:
    server_of(connection)  # By the way, Django learns what it is connected to.


@hookimpl
def steady_queue_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    return conversation.transaction(connection)


@hookimpl
def steady_queue_lock_rows(
    connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool
) -> QuerySet[Any]:
    server_of(connection)
    return portable.lock_rows(connection, rows, wait)


@hookimpl
def steady_queue_is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return errors.is_contention(error)


@hookimpl
def steady_queue_is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return errors.is_lost_connection(connection, error)


@hookimpl
def steady_queue_enqueue(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    return enqueue(connection, jobs)


@hookimpl
def steady_queue_claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    return claim.claim(connection, process, selector, limit)


@hookimpl
def steady_queue_settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    return settle.settle(connection, outcomes)


@hookimpl
def steady_queue_settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    return settle.settle_and_claim(connection, outcomes, process, selector, limit)


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
    return upserts.insert_if_absent(connection, row, unique_fields)


@hookimpl
def steady_queue_upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    upserts.upsert(connection, rows, unique_fields, update_fields)


@hookimpl
def steady_queue_now(connection: BaseDatabaseWrapper) -> Expression:
    return UtcNow()


@hookimpl
def steady_queue_exact_collation(connection: BaseDatabaseWrapper) -> str | None:
    return server_of(connection).exact_collation


@hookimpl
def steady_queue_wakeup(connection: BaseDatabaseWrapper) -> Wakeup | None:
    return bell.bell(connection)


@hookimpl
def steady_queue_ring(connection: BaseDatabaseWrapper) -> None:
    bell.ringer.ring(connection)


@hookimpl
def steady_queue_checks(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    return checks.run(connection)
