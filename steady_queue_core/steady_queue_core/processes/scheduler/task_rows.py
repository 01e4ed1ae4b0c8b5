"""Reads rows of recurring tasks, in which a manual edit may have left anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import DataError
from django.db.models import QuerySet

from ...models import RecurringTask

#: What drivers and fields raise for an instant that is none: SQLite stores any text as one, and
#: PostgreSQL knows ``infinity``.
UNREADABLE = (ValueError, TypeError, AttributeError, OverflowError, DataError)


def read_rows(rows: QuerySet[RecurringTask], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the ``columns`` of these rows, the key first; of a row that cannot be read, only the
    key and the reason."""
    try:
        return list(rows.values_list(*columns))
    except UNREADABLE:
        keys = list(rows.values_list("key", flat=True))
        return [row for key in keys for row in _read_one(rows, key, columns)]


def _read_one(
    rows: QuerySet[RecurringTask], key: Any, columns: Sequence[str]
) -> list[tuple[Any, ...]]:
    try:
        return list(rows.filter(pk=key).values_list(*columns))
    except UNREADABLE as error:
        return [(key, f"its row cannot be read: {error}")]
