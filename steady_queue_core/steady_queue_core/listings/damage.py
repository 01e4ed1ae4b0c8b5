"""Reading rows that were damaged by manual edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import DataError, OperationalError
from django.db.models import QuerySet

DAMAGED = "(damaged)"
#: What Django raises for a value that is invalid for its column.
ERRORS = (
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    DataError,
    OperationalError,
)


def is_damage(error: Exception) -> bool:
    """Whether an error is caused by the contents of a row rather than by the database."""
    # SQLite stores any bytes as text, and fails when they are read.
    return not isinstance(error, OperationalError) or "decode to UTF-8" in str(error)


def read_each(rows: QuerySet[Any], keys: Sequence[Any]) -> dict[Any, Any]:
    """Return the rows with these primary keys, by key; ``None`` for a damaged row, which is found
    by halving."""
    try:
        return {row.pk: row for row in rows.filter(pk__in=keys)}
    except ERRORS as error:
        if not is_damage(error):
            raise
    if len(keys) == 1:
        return {keys[0]: None}
    half = len(keys) // 2
    return {**read_each(rows, keys[:half]), **read_each(rows, keys[half:])}


def readable(read: Callable[[], Iterable[str]]) -> list[str]:
    """Return the names that ``read`` returns; none if any of them is damaged."""
    try:
        return [each for each in read() if isinstance(each, str)]
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []
