"""What may be done to jobs: retry, discard, cancel, run now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..listings.states import STATES, State
from ..models import Job
from ..models.execution import Execution
from ..models.job_queryset import JobQuerySet
from ..models.operations import cancel, discard, retry, run_now


@dataclass(frozen=True)
class JobAction:
    """An action on jobs, with its words."""

    #: As in "would be ...", and as the first word of a sentence.
    past: str
    #: The states of jobs that it applies to, in the order in which jobs pass through them.
    executions: Sequence[type[Execution]]
    #: Performs it on many jobs; returns how many were in a suitable state.
    on_many: Callable[[JobQuerySet], int]
    #: Performs it on one job; returns whether that was in a suitable state.
    on_one: Callable[[Job], bool]
    #: What is lost by it; empty: nothing, and nobody is asked.
    warning: str = ""
    #: Whether even jobs that are named by their ids are asked about.
    asks_always: bool = False

    @property
    def states(self) -> list[State]:
        """The states of jobs that it applies to."""
        by_model = {state.order.model: state for state in STATES.values() if state.relation}
        return [by_model[each] for each in self.executions]


def _discard(job: Job) -> bool:
    using = job._state.db
    return bool(Job.objects.using(using).filter(pk=job.pk).discard())


RETRY = JobAction(
    "retried", retry.STATES, lambda jobs: jobs.retry_failed(), lambda job: job.retry()
)
RUN_NOW = JobAction(
    "dispatched", run_now.STATES, lambda jobs: jobs.run_now(), lambda job: job.run_now()
)
CANCEL = JobAction(
    "cancelled",
    cancel.STATES,
    lambda jobs: jobs.cancel(),
    lambda job: job.cancel(),
    warning="Running tasks are interrupted.",
)
DISCARD = JobAction(
    "discarded",
    discard.STATES,
    lambda jobs: jobs.discard(),
    _discard,
    warning="This cannot be undone.",
    asks_always=True,
)
