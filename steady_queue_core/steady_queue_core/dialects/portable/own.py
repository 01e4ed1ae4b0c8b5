"""What the building blocks take from the dialect that they are part of.

One that has a hook of its own, for the time, transactions or locks, gets it everywhere: a building
block that did these as the other ones do would disagree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet

from ...features.batches.link import Link
from ..membership import MemberState
from ..operations import Operations
from ..present_rows import PresentRows

#: What returns the dialect of a database: it imports these modules, and puts itself here.
pick: list[Callable[[str], Operations]] = []


def present_time(connection: BaseDatabaseWrapper) -> datetime:
    """Return the time by the dialect's clock, aware, in UTC."""
    return _dialect_of(connection).current_time(connection)


def transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Return a transaction of the dialect, which joins the caller's."""
    return _dialect_of(connection).transaction(connection)


def lock_rows(connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool) -> QuerySet[Any]:
    """Return ``rows``, to be locked in the way of the dialect."""
    return _dialect_of(connection).lock_rows(connection, rows, wait=wait)


def present_rows(connection: BaseDatabaseWrapper) -> PresentRows:
    """Return what reads rows as of now, whatever the current transaction sees."""
    return PresentRows(connection, _dialect_of(connection))


def insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert a row in the way of the dialect, unless it exists; return whether it did not."""
    return _dialect_of(connection).insert_if_absent(connection, row, unique_fields)


def upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    """Insert rows, or update those that exist, in the way of the dialect."""
    _dialect_of(connection).upsert(connection, rows, unique_fields, update_fields)


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    """Return the queues with ready jobs that the dialect lists."""
    return _dialect_of(connection).list_queues(connection, prefix)


def members_of(jobs: Mapping[int, object]) -> list[int]:
    """Return those of ``jobs``, metadata by the ids, that are members of batches."""
    links = {job_id: Link.read(metadata) for job_id, metadata in jobs.items()}
    return [job_id for job_id, link in links.items() if link is not None and not link.is_callback]


def end_discarded(connection: BaseDatabaseWrapper, jobs: Mapping[int, object]) -> None:
    """Tell the batches of ``jobs``, metadata by the ids, that the dialect has deleted them in the
    current transaction."""
    if members := members_of(jobs):
        ended = dict.fromkeys(members, MemberState.DISCARDED)
        _dialect_of(connection).end_members(connection, ended)


def _dialect_of(connection: BaseDatabaseWrapper) -> Operations:
    return pick[0](connection.alias)
