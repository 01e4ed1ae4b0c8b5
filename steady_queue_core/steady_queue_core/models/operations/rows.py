"""Many rows in few statements: parts of them, values of their own, and deleting jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet

from ..checkpoint import Checkpoint
from ..step import Step

T = TypeVar("T")

#: Most rows that one statement reads or changes, unless it says otherwise.
MOST = 500
#: Most rows to which one statement writes values of their own, and about the most characters of
#: these: servers limit the length of a statement.
ROWS, LENGTH = 100, 1 << 18


def parts(items: Collection[T], size: int = MOST) -> Iterator[list[T]]:
    """Yield ``items`` in parts of at most ``size``."""
    ordered = list(items)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def write_own_values(rows: QuerySet[Any], column: str, values: Mapping[int, Any]) -> None:
    """Set ``column`` to the value of each row's primary key in ``values``."""
    for part in _writable(values):
        rows.bulk_update([rows.model(pk=pk, **{column: value}) for pk, value in part], [column])


def _writable(values: Mapping[int, Any]) -> Iterator[list[tuple[int, Any]]]:
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


def delete_jobs(jobs: QuerySet[Any], job_ids: Sequence[int]) -> None:
    """Delete these of all ``jobs``, and what attempts have stored beside them, in the current
    transaction."""
    using = jobs.db
    jobs.filter(pk__in=job_ids)._raw_delete(using)
    Checkpoint.objects.using(using).filter(pk__in=job_ids)._raw_delete(using)
    Step.objects.using(using).filter(job_id__in=job_ids)._raw_delete(using)
