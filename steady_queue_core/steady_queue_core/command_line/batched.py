"""Changing many jobs in batches, each in its own transaction."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import DatabaseError
from django.db.models import Q

from ..dialects.database import Database
from ..listings.counts import BoundedCount
from ..listings.job_listing import LOOKED_AT, JobListing
from ..listings.states import READY
from ..models import Job
from ..models.operations.walk import without_successors
from .context import Context
from .formats import positive_option
from .interruption import Interruption
from .job_action import JobAction
from .progress import Progress

#: Jobs of a batch, unless the options say otherwise.
BATCH = 500
#: Tries of a batch while others hold locks that it needs, and seconds between them.
TRIES, PAUSE = 5, 0.2
#: Jobs that a count looks at where no index serves it.
COUNTED = 100_000


def add_batch_options(parser: ArgumentParser) -> None:
    """Add the options of what changes many jobs: ``dry_run``, ``yes`` and ``batch_size``."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--batch-size",
        type=positive_option,
        default=BATCH,
        metavar="N",
        help=f"jobs that one transaction changes ({BATCH})",
    )


@dataclass(frozen=True)
class Outcome:
    """What has become of an action on many jobs."""

    changed: int
    was_interrupted: bool


@dataclass(frozen=True)
class Selection:
    """The jobs to change: one listing for each state that the action applies to."""

    using: str
    listings: Sequence[JobListing]

    @classmethod
    def of(cls, using: str, listings: Sequence[JobListing], action: JobAction) -> Selection:
        """Return the selection without jobs that are enqueued from now on: it has an end."""
        last = Job.objects.using(using).order_by("-pk").values_list("pk", flat=True).first() or 0
        return cls(using, [_until(each, last, action) for each in listings])

    def count(self) -> BoundedCount:
        """Count the jobs, as far as that takes little time."""
        counts = [_count(each) for each in self.listings]
        exact = all(each.exact for each in counts)
        return BoundedCount(sum(each.number for each in counts), exact)

    def batches(self, size: int) -> Iterator[list[int]]:
        """Yield the ids of the jobs, in batches, which may be empty."""
        for listing in self.listings:
            batches = _parts(listing.batches(), size)
            if listing.state is READY:
                batches = without_successors(Job.objects.using(self.using), batches)
            yield from batches


def apply(
    context: Context,
    action: JobAction,
    selection: Selection,
    size: int,
    total: BoundedCount | None = None,
) -> Outcome:
    """Perform an action on all jobs of a selection, until Ctrl-C. ``total`` is their number, as far
    as that is known."""
    database = Database.of(selection.using)
    words = action.past.capitalize()
    with Interruption() as interruption, _progress(context, words, total) as progress:
        for ids in selection.batches(size):
            if interruption.requested:
                return Outcome(progress.done, was_interrupted=True)
            progress.advance(_apply(database, action, ids) if ids else 0)
        return Outcome(progress.done, was_interrupted=False)


def _progress(context: Context, words: str, total: BoundedCount | None) -> Progress:
    return Progress(context, words, total.number if total is not None and total.exact else None)


def _apply(database: Database, action: JobAction, ids: Sequence[int]) -> int:
    for _ in range(TRIES - 1):
        try:
            return action.on_many(_jobs(database, ids))
        except DatabaseError as error:
            if not database.is_contention(error):
                raise
        time.sleep(PAUSE)
    return action.on_many(_jobs(database, ids))


def _jobs(database: Database, ids: Sequence[int]) -> Any:
    return Job.objects.using(database.alias).filter(pk__in=ids)


def _parts(batches: Iterable[list[int]], size: int) -> Iterator[list[int]]:
    for ids in batches:
        yield from (ids[start : start + size] for start in range(0, max(1, len(ids)), size))


def _until(listing: JobListing, last: int, action: JobAction) -> JobListing:
    return replace(listing, within=listing.within & Q(pk__lte=last), by_id=action.reorders)


def _count(listing: JobListing) -> BoundedCount:
    known = listing.count()
    if known is not None:
        return known
    found = examined = 0
    for ids in listing.batches():
        found += len(ids)
        examined += LOOKED_AT
        if examined >= COUNTED:
            return BoundedCount(found, exact=False)
    return BoundedCount(found)
