"""Rows that somebody has written by hand, and that cannot be read as what they should be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from django.contrib.admin import display
from django.core.exceptions import ObjectDoesNotExist
from django.db import DataError, OperationalError
from django.db.models import QuerySet

DAMAGED = "(damaged)"
#: What Django raises for a value that is none of its column.
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
    """Whether an error is due to what a row holds, not to the database."""
    # SQLite takes any bytes for text, and says so when they are read.
    return not isinstance(error, OperationalError) or "decode to UTF-8" in str(error)


def read_each(rows: QuerySet[Any], keys: Sequence[Any]) -> dict[Any, Any]:
    """Return the rows with these primary keys, by their keys; ``None`` for one that is damaged."""
    try:
        return {row.pk: row for row in rows.filter(pk__in=keys)}
    except ERRORS as error:
        if not is_damage(error):
            raise
    return {key: row for key in keys for row in _read_one(rows, key)}


def _read_one(rows: QuerySet[Any], key: Any) -> list[Any]:
    try:
        return list(rows.filter(pk=key))
    except ERRORS as error:
        if not is_damage(error):
            raise
        return [None]


def readable(read: Callable[[], Iterable[str]]) -> list[str]:
    """Return the names that ``read`` finds; none if one of them is damaged."""
    try:
        return [each for each in read() if isinstance(each, str)]
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []


def column(description: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Make a function of a row a column of a list. What is not there is left blank; what cannot
    be shown is said to be damaged."""

    def decorate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @display(description=description)
        @wraps(function)
        def shown(row: Any) -> Any:
            try:
                return function(row)
            except ObjectDoesNotExist:
                return ""
            except ERRORS:
                return DAMAGED

        return shown

    return decorate
