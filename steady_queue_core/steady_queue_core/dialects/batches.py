"""Statements of bounded size: the jobs of one enqueue, and rows by their keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from .records import NewJob

T = TypeVar("T")
K = TypeVar("K")

#: Most jobs of one statement, and about as much text.
MOST_JOBS, MOST_TEXT = 1_000, 2**22


def split(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Yield batches of ``jobs`` in their order; one empty batch if there are none."""
    batch: list[NewJob] = []
    text = 0
    for job in jobs:
        # Without arguments, the database refuses the job.
        size = len(job.arguments or "") + len(job.metadata or "")
        if batch and (len(batch) >= MOST_JOBS or text + size > MOST_TEXT):
            yield batch
            batch, text = [], 0
        batch.append(job)
        text += size
    yield batch


def parts(items: Collection[T], size: int | None = None) -> Iterator[list[T]]:
    """Yield ``items`` in lists of at most this ``size``, as many as jobs of one statement."""
    ordered, size = list(items), size or MOST_JOBS
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def by_value(items: Mapping[K, T]) -> dict[T, list[K]]:
    """Return the keys of each value, for statements that write one value to many rows."""
    found: dict[T, list[K]] = {}
    for key, value in items.items():
        found.setdefault(value, []).append(key)
    return found
