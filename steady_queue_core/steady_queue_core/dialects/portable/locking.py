"""Transactions, row locks, and what an error means."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

#: Serialisation failure, deadlock, lock not available (SQL standard and PostgreSQL).
CONTENTION_SQLSTATES = frozenset({"40001", "40P01", "55P03"})
#: Lock wait time-out and deadlock of MySQL and MariaDB.
CONTENTION_ERRNOS = frozenset({1205, 1213})


def transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Return Django's own transaction, joining the caller's without a savepoint."""
    block: AbstractContextManager[None] = atomic(using=connection.alias, savepoint=False)
    return block


def lock_rows(connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool) -> QuerySet[Any]:
    """Return ``rows`` for update, where the database has such a lock."""
    features = connection.features
    if not features.has_select_for_update:
        return rows
    skip = not wait and features.has_select_for_update_skip_locked
    return rows.select_for_update(skip_locked=skip)


def is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Recognise deadlocks and lock time-outs by SQLSTATE and by MySQL's numbers."""
    if not isinstance(error, OperationalError):
        return False
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) in CONTENTION_SQLSTATES:
        return True
    number = getattr(cause, "errno", None) or next(iter(error.args), None)
    return number in CONTENTION_ERRNOS


def is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Recognise a dead connection by trying it."""
    if isinstance(error, InterfaceError):
        return True
    return isinstance(error, OperationalError) and not connection.is_usable()
