"""What can be done with jobs: retry, run now, discard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.contrib.admin.models import CHANGE, DELETION

from ..models import Job
from ..models.base import queue_database
from ..models.jobs import JobQuerySet
from .acts import Done, in_batches
from .job_listing import JobListing

#: Returns those of some ids whose jobs the user may see and act on.
Permitted = Callable[[Sequence[int]], Sequence[int]]


@dataclass(frozen=True)
class Act:
    """One thing to do with jobs."""

    name: str
    #: The permission that it needs.
    permission: str
    #: On buttons, and in what is told afterwards.
    label: str
    past: str
    do: Callable[[str, Sequence[int]], int]
    flag: int = CHANGE
    #: Whether it is asked first whether it is meant.
    destroys: bool = False

    def on_ids(self, using: str, ids: Sequence[int], permitted: Permitted) -> Done:
        """Do it to these jobs, as far as they are in a state for it, and the user may."""
        return self._run(using, [ids], permitted)

    def on_listed(self, listing: JobListing, permitted: Permitted) -> Done:
        """Do it to all jobs of a list, on all its pages."""
        return self._run(listing.using, listing.batches(), permitted)

    def _run(self, using: str, chunks: Iterable[Sequence[int]], permitted: Permitted) -> Done:
        connection, dialect = queue_database(using)
        return in_batches(
            chunks,
            lambda ids: self.do(using, permitted(ids)),
            lambda error: dialect.is_contention(connection, error),
        )


def _jobs(using: str, ids: Sequence[int]) -> JobQuerySet:
    return Job.objects.using(using).filter(pk__in=ids)


RETRY = Act("retry", "retry_job", "Retry", "Retried", lambda u, ids: _jobs(u, ids).retry_failed())
RUN = Act("run", "run_job", "Run now", "Dispatched", lambda u, ids: _jobs(u, ids).run_now())
DISCARD = Act(
    "discard",
    "discard_job",
    "Discard",
    "Discarded",
    lambda u, ids: _jobs(u, ids).discard(),
    flag=DELETION,
    destroys=True,
)
ACTS = {act.name: act for act in (RETRY, RUN, DISCARD)}
