"""Reading rows that were damaged by manual edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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


@contextmanager
def suppress_damage() -> Iterator[None]:
    """Go on after the block if a row that it reads is damaged. Other errors are raised."""
    try:
        yield
    except ERRORS as error:
        if not is_damage(error):
            raise


def read_each(rows: QuerySet[Any], keys: Sequence[Any]) -> dict[Any, Any]:
    """Return the rows with these primary keys, by key; ``None`` for a damaged row, which is found
    by halving."""
    with suppress_damage():
        return {row.pk: row for row in rows.filter(pk__in=keys)}
    if len(keys) == 1:
        return {keys[0]: None}
    half = len(keys) // 2
    return {**read_each(rows, keys[:half]), **read_each(rows, keys[half:])}


def read_in_order(rows: QuerySet[Any], keys: Sequence[Any]) -> tuple[list[Any], int]:
    """Return the rows with these primary keys, in this order, and how many others are damaged."""
    found = read_each(rows, keys)
    there = [found[key] for key in keys if key in found]
    sound = [row for row in there if row is not None]
    return sound, len(there) - len(sound)


def readable(read: Callable[[], Iterable[str]]) -> list[str]:
    """Return the names that ``read`` returns; none if any of them is damaged."""
    with suppress_damage():
        return [each for each in read() if isinstance(each, str)]
    return []
