"""The jobs that one action is to change, in parts that are one transaction each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from django.db import DatabaseError
from django.db.models import Q

from ..dialects.database import Database
from ..models import Job
from ..models.operations.walk import without_successors
from .counts import BoundedCount
from .job_listing import LOOKED_AT, JobListing
from .states import READY

T = TypeVar("T")

#: Tries of a part while others hold locks that it needs, and seconds between them.
TRIES, PAUSE = 5, 0.2


@dataclass(frozen=True)
class Selection:
    """The jobs of several listings, such as one for each state that an action applies to."""

    using: str
    listings: Sequence[JobListing]

    @classmethod
    def until_now(cls, using: str, listings: Sequence[JobListing], *, by_id: bool) -> Selection:
        """Return the selection without jobs that are enqueued from now on: it has an end."""
        until = Q(pk__lte=newest_id(using))
        return cls(
            using, [replace(each, within=each.within & until, by_id=by_id) for each in listings]
        )

    def count(self, most: int) -> BoundedCount:
        """Count the jobs; where no index serves that, among the first ``most``."""
        return BoundedCount.sum_of(count_all(each, most) for each in self.listings)

    def parts(self, size: int) -> Iterator[list[int]]:
        """Yield the ids of the jobs, in parts of at most ``size``, which may be empty."""
        for listing in self.listings:
            parts: Iterator[list[int]] = (ids for ids, _ in listing.parts("", size))
            if listing.state is READY:
                parts = without_successors(Job.objects.using(self.using), parts)
            yield from parts


def newest_id(using: str) -> int:
    """Return the id of the job that was enqueued last; 0 if there is none."""
    return Job.objects.using(using).order_by("-pk").values_list("pk", flat=True).first() or 0


def count_all(listing: JobListing, most: int) -> BoundedCount:
    """Count the jobs of a listing; where no index serves its filters, among the first ``most``."""
    known = listing.count()
    if known is not None:
        return known
    found = examined = 0
    for ids in listing.batches():
        found += len(ids)
        examined += LOOKED_AT
        if examined >= most:
            return BoundedCount(found, exact=False)
    return BoundedCount(found)


def insisting(database: Database, change: Callable[[], T]) -> T:
    """Return the result of ``change``, a transaction, which is tried again while others hold locks
    that it needs."""
    for _ in range(TRIES - 1):
        try:
            return change()
        except DatabaseError as error:
            if not database.is_contention(error):
                raise
        time.sleep(PAUSE)
    return change()
