"""Running a statement on the calling thread's connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import mark_for_rollback_on_error

from .plans import Plans


def fetch(
    connection: BaseDatabaseWrapper, statement: str, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Run one statement, a transaction of its own or part of the caller's; return its rows.

    An error spoils the caller's transaction visibly: PostgreSQL would turn its commit into a
    rollback without a word.
    """
    with mark_for_rollback_on_error(connection.alias):
        plans = Plans.of(connection)
        if plans is not None and (plans.owns_transaction or not connection.in_atomic_block):
            return plans.fetch(connection, statement, values)
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())
