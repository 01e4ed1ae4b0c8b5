"""Transactions and row locks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic


def transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Return a transaction of Django, which joins the caller's without a savepoint."""
    block: AbstractContextManager[None] = atomic(using=connection.alias, savepoint=False)
    return block


def lock_rows(connection: BaseDatabaseWrapper, rows: QuerySet[Any], wait: bool) -> QuerySet[Any]:
    """Return ``rows`` with FOR UPDATE, where the database has row locks."""
    features = connection.features
    if not features.has_select_for_update:
        return rows
    skip = not wait and features.has_select_for_update_skip_locked
    return rows.select_for_update(skip_locked=skip)
