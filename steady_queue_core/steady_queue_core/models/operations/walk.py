"""Walking many jobs in batches, each of which is changed before the next one is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.db.models import QuerySet

from ..semaphore import Permit


def batches_of(rows: QuerySet[Any], column: str, size: int) -> Iterator[list[int]]:
    """Yield the ids in a column of ``rows``, in ascending order. Each batch is read anew."""
    ids = rows.order_by(column).values_list(column, flat=True)
    last = 0
    while batch := list(ids.filter(**{f"{column}__gt": last})[:size]):
        yield batch
        last = batch[-1]


def without_successors(jobs: QuerySet[Any], batches: Iterable[list[int]]) -> Iterator[list[int]]:
    """Yield ``batches`` of ids of ready jobs, each of which the caller changes before it asks for
    the next one, without those that have got their permits from jobs of earlier batches.

    ``jobs`` are all jobs. A batch is read before the one ahead of it is changed: after the last one
    nobody asks who has got permits, of which a key may have very many.
    """
    successors = set[int]()
    reading = iter(batches)
    job_ids = next(reading, None)
    while job_ids is not None:
        following = next(reading, None)
        left = [pk for pk in job_ids if pk not in successors]
        keys = set[str]() if following is None else _limited(jobs, left)
        before = _holders(jobs.db, keys)
        yield left
        successors |= _holders(jobs.db, keys) - before
        job_ids = following


def _limited(jobs: QuerySet[Any], job_ids: Collection[int]) -> set[str]:
    """Return the keys of those of these jobs that have limits."""
    limited = jobs.filter(pk__in=job_ids).exclude(concurrency_key=None)
    return set(limited.values_list("concurrency_key", flat=True))


def _holders(using: str, keys: Collection[str]) -> set[int]:
    """Return the ids of the jobs that hold permits of these keys."""
    if not keys:
        return set()
    permits = Permit.objects.using(using).filter(key__in=sorted(keys))
    return set(permits.values_list("pk", flat=True))
