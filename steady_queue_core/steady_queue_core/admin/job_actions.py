"""What can be done with jobs: retry, run now, discard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.contrib.admin.models import CHANGE, DELETION

from ..dialects.database import Database
from ..models import Job
from ..models.execution import Execution
from ..models.job_queryset import JobQuerySet
from ..models.operations import discard as discarding
from ..models.operations import retry as failures
from ..models.operations import run_now as dispatching
from .actions import Done, in_batches
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
    #: The states of the jobs that it can be done to.
    states: Sequence[type[Execution]]
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
        def do(ids: Sequence[int]) -> int:
            able = self._able(using, permitted(ids))
            count = self.do(using, able)
            # Others may have been faster with some of them.
            left = {*self._able(using, able)} if count < len(able) else set()
            record([each for each in able if each not in left])
            return count

        return in_batches(chunks, do, Database.of(using).is_contention)

    def _able(self, using: str, ids: Sequence[int]) -> list[int]:
        """Return those of ``ids`` whose jobs are in a state for it."""
        able: set[int] = set()
        for state in self.states:
            rows = state._default_manager.using(using).filter(pk__in=ids)
            able.update(rows.values_list("pk", flat=True))
        return [each for each in ids if each in able]


def _jobs(using: str, ids: Sequence[int]) -> JobQuerySet:
    return Job.objects.using(using).filter(pk__in=ids)


RETRY = Act(
    "retry",
    "retry_job",
    "Retry",
    "Retried",
    lambda u, ids: _jobs(u, ids).retry_failed(),
    failures.STATES,
)
RUN = Act(
    "run",
    "run_job",
    "Run now",
    "Dispatched",
    lambda u, ids: _jobs(u, ids).run_now(),
    dispatching.STATES,
)
DISCARD = Act(
    "discard",
    "discard_job",
    "Discard",
    "Discarded",
    lambda u, ids: _jobs(u, ids).discard(),
    discarding.STATES,
    flag=DELETION,
    destroys=True,
)
ACTS = {act.name: act for act in (RETRY, RUN, DISCARD)}
