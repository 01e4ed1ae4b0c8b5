"""Writing to each of many rows a value of its own, in few statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet

#: Most rows that one statement writes, and about the most characters of their values: servers limit
#: the length of a statement.
ROWS, LENGTH = 100, 1 << 18


def write_own_values(rows: QuerySet[Any], column: str, values: Mapping[int, Any]) -> None:
    """Set ``column`` to the value of each row's primary key in ``values``."""
    for part in _parts(values):
        rows.bulk_update([rows.model(pk=pk, **{column: value}) for pk, value in part], [column])


def _parts(values: Mapping[int, Any]) -> Iterator[list[tuple[int, Any]]]:
    part: list[tuple[int, Any]] = []
    length = 0
    for pk, value in values.items():
        size = len(value) if isinstance(value, str) else 0
        if part and (len(part) >= ROWS or length + size > LENGTH):
            yield part
            part, length = [], 0
        part.append((pk, value))
        length += size
    if part:
        yield part
