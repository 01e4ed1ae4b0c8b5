"""What can be done with jobs: retry, run now, discard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.contrib.admin.models import CHANGE, DELETION
from django.db.models import Q

from ..models import Job
from ..models.base import queue_database
from ..models.discarding import DISCARDABLE
from ..models.dispatching import WAITING
from ..models.failures import FAILED
from ..models.jobs import JobQuerySet
from .acts import Done, in_batches
from .job_listing import JobListing

#: Returns those of some ids whose jobs the user may see and act on.
Permitted = Callable[[Sequence[int]], Sequence[int]]
#: Is told the ids of the jobs that something was done to.
Record = Callable[[Sequence[int]], None]


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
    #: What is true of the jobs that it can be done to.
    where: Q
    flag: int = CHANGE
    #: Whether it is asked first whether it is meant.
    destroys: bool = False

    @property
    def warning(self) -> str:
        return " They cannot be brought back." if self.destroys else ""

    def on_ids(self, using: str, ids: Sequence[int], permitted: Permitted, record: Record) -> Done:
        """Do it to these jobs, as far as they are in a state for it, and the user may."""
        return self._run(using, [ids], permitted, record)

    def on_listed(self, listing: JobListing, permitted: Permitted, record: Record) -> Done:
        """Do it to all jobs of a list, on all its pages."""
        return self._run(listing.using, listing.batches(), permitted, record)

    def _run(
        self, using: str, chunks: Iterable[Sequence[int]], permitted: Permitted, record: Record
    ) -> Done:
        connection, dialect = queue_database(using)

        def do(ids: Sequence[int]) -> int:
            able = self._able(using, permitted(ids))
            count = self.do(using, able)
            # Others may have been faster with some of them.
            left = {*self._able(using, able)} if count < len(able) else set()
            record([each for each in able if each not in left])
            return count

        return in_batches(chunks, do, lambda error: dialect.is_contention(connection, error))

    def _able(self, using: str, ids: Sequence[int]) -> list[int]:
        """Return those of ``ids`` whose jobs are in a state for it."""
        jobs = Job.objects.using(using).filter(self.where, pk__in=ids)
        return list(jobs.values_list("pk", flat=True))


def _jobs(using: str, ids: Sequence[int]) -> JobQuerySet:
    return Job.objects.using(using).filter(pk__in=ids)


RETRY = Act(
    "retry",
    "retry_job",
    "Retry",
    "Retried",
    lambda u, ids: _jobs(u, ids).retry_failed(),
    FAILED,
)
RUN = Act(
    "run",
    "run_job",
    "Run now",
    "Dispatched",
    lambda u, ids: _jobs(u, ids).run_now(),
    WAITING,
)
DISCARD = Act(
    "discard",
    "discard_job",
    "Discard",
    "Discarded",
    lambda u, ids: _jobs(u, ids).discard(),
    DISCARDABLE,
    flag=DELETION,
    destroys=True,
)
ACTS = {act.name: act for act in (RETRY, RUN, DISCARD)}
