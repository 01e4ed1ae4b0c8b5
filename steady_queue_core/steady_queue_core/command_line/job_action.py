"""What may be done to jobs: retry, run now, move, reschedule, copy, cancel, discard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..listings.states import STATES, State
from ..models import Job
from ..models.execution import Execution
from ..models.job_queryset import JobQuerySet
from ..models.operations import cancel, discard, move, reschedule, retry, run_now

#: More jobs than one transaction of the command line changes.
MOST_AT_ONCE = 2**31


@dataclass(frozen=True)
class JobAction:
    """An action on jobs, with its words."""

    #: As in "would be ...", and as the first word of a sentence.
    past: str
    #: The states of jobs that it applies to, in the order in which jobs pass through them.
    executions: Sequence[type[Execution]]
    #: Performs it on many jobs; returns how many were in a suitable state.
    on_many: Callable[[JobQuerySet[Job]], int]
    #: Performs it on one job; returns whether that was in a suitable state.
    on_one: Callable[[Job], bool]
    #: What is lost by it; empty: nothing, and nobody is asked.
    warning: str = ""
    #: Whether it changes the places of jobs in lists.
    reorders: bool = False
    #: Whether even jobs that are named by their ids are asked about.
    asks_always: bool = False

    @property
    def states(self) -> list[State]:
        """The states of jobs that it applies to: all of them if there are no executions."""
        if not self.executions:
            return [state for state in STATES.values() if state.name]
        by_model = {state.order.model: state for state in STATES.values() if state.relation}
        return [by_model[each] for each in self.executions]


def _discard(job: Job) -> bool:
    using = job._state.db
    return bool(Job.objects.using(using).filter(pk=job.pk).discard())


def moving(changes: Mapping[str, Any]) -> JobAction:
    """Return the action that gives jobs another queue or priority: arguments of ``move_to()``."""
    return JobAction(
        "moved",
        move.STATES,
        lambda jobs: jobs.move_to(**changes),
        lambda job: job.move_to(**changes),
        reorders=True,
    )


def rescheduling(due: datetime) -> JobAction:
    """Return the action that lets jobs be due at a time."""
    return JobAction(
        "rescheduled",
        reschedule.STATES,
        lambda jobs: jobs.reschedule(due),
        lambda job: job.reschedule(due),
        reorders=True,
    )


#: In one transaction: a part of them that is tried again would be there twice.
COPY = JobAction(
    "enqueued again",
    (),
    lambda jobs: jobs.enqueue_copies(batch_size=MOST_AT_ONCE),
    lambda job: job.enqueue_copy() is not None,
    warning="Each becomes a new job.",
    reorders=True,
)
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
