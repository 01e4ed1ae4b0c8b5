"""Actions on jobs: retry, run now, move, reschedule, enqueue again, cancel, discard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION

from ..dialects.database import Database
from ..models import Job
from ..models.execution import Execution
from ..models.job_queryset import JobQuerySet
from ..models.operations import cancel, discard, enqueue_copy, move, reschedule, retry, run_now
from ..own_tasks import OWN_TASKS
from .action_forms import ActionForm, MoveForm, RescheduleForm
from .actions import BatchResult, act_and_record, add_history_of, run_in_batches

#: Returns those of the given ids on whose jobs the user may perform the action.
Permitted = Callable[[Sequence[int]], Sequence[int]]
#: Records the action in the history of the jobs with the given ids.
AddHistory = Callable[[Sequence[int]], None]


@dataclass(frozen=True)
class JobAction:
    """An action on jobs."""

    name: str
    #: Codename of the required permission.
    permission: str
    #: Label of buttons, and past participle for messages.
    label: str
    past: str
    #: Takes the database, the ids of jobs, and the options; returns how many jobs it has changed,
    #: or the ids of these, if that cannot be seen from their states.
    do: Callable[..., Any]
    #: The states of jobs that the action applies to; empty: all.
    states: Sequence[type[Execution]]
    flag: int = CHANGE
    #: What the user has to confirm; empty: nothing.
    warning: str = ""
    #: Why jobs may have been left alone that were in a suitable state before.
    left_alone: str = "had changed state in the meantime"
    #: Whether it changes the places of jobs in lists.
    reorders: bool = False
    #: The same of one job.
    refused: str = "has changed state in the meantime"
    #: Makes the form that asks for the options.
    form: type[ActionForm] | None = None
    #: What the user has entered, in a form that a task may have as an argument.
    options: Mapping[str, Any] = field(default_factory=dict)

    def given(self, options: Mapping[str, Any]) -> JobAction:
        """Return the action with what the user has entered."""
        return replace(self, options=options)

    @property
    def told(self) -> str:
        """What has been done, for messages: the options."""
        return "" if self.form is None else self.form.told(self.options)

    @property
    def destroys(self) -> bool:
        """Whether the job is gone afterwards."""
        return self.flag == DELETION

    def summary(self, changed: int) -> str:
        """What has come of it, for messages."""
        return f"{self.past} {changed:,} job{'' if changed == 1 else 's'}{self.told}"

    def add_history(self, user_id: Any, ids: Sequence[int]) -> None:
        """Record that a user has done it to the jobs with these ids."""
        names = {each: f"#{each}" for each in ids}
        add_history_of(user_id, Job, self.past + self.told, names, self.flag)

    def apply(
        self,
        using: str,
        parts: Iterable[Sequence[int]],
        permitted: Permitted,
        add_history: AddHistory,
    ) -> BatchResult:
        """Perform the action on those of the jobs that are in a suitable state and permitted."""

        def do(ids: Sequence[int]) -> int:
            return self.act_on(using, permitted(ids), add_history)

        return run_in_batches(Database.of(using), parts, do)

    def act_on(self, using: str, ids: Sequence[int], add_history: AddHistory) -> int:
        """Perform the action on those of these jobs that are in a suitable state; return their
        number."""
        applicable = self._applicable(using, ids)
        if not self.states:
            # It could be done once more: no state tells that it was done.
            return len(act_and_record(using, partial(self.do, using, applicable), add_history))
        done = self.do(using, applicable, **self.options)
        if isinstance(done, list):
            add_history(done)
            return len(done)
        count: int = done
        # Others may have changed some of them first.
        left = {*self._applicable(using, applicable)} if count < len(applicable) else set()
        add_history([each for each in applicable if each not in left])
        return count

    def _applicable(self, using: str, ids: Sequence[int]) -> list[int]:
        """Return those of ``ids`` whose jobs are in a suitable state."""
        if not self.states:
            return list(Job.objects.using(using).filter(pk__in=ids).values_list("pk", flat=True))
        applicable: set[int] = set()
        for state in self.states:
            rows = state._default_manager.using(using).filter(pk__in=ids)
            applicable.update(rows.values_list("pk", flat=True))
        return [each for each in ids if each in applicable]


def _jobs(using: str, ids: Sequence[int] | None = None) -> JobQuerySet[Job]:
    jobs: JobQuerySet[Job] = Job.objects.using(using)
    return jobs if ids is None else jobs.filter(pk__in=ids)


def _copied(using: str, ids: Sequence[int]) -> list[int]:
    """Return the ids of the jobs that were enqueued again."""
    stored = enqueue_copy.enqueue_copies(_jobs(using), ids)
    return [pk for pk, new in stored.items() if new.job_id is not None]


def taken_key(using: str, job_id: int, name: str) -> str:
    """Return the reason why a job cannot be retried or copied, if it is that another one has its
    unique key."""
    finders = {RETRY.name: retry.key_holder, COPY.name: retry.holder_of_key}
    taken = finders[name](_jobs(using, [job_id])) if name in finders else None
    return (
        "" if taken is None else f"job #{taken[1]} has the unique key of job #{job_id}, {taken[0]}"
    )


RETRY = JobAction(
    "retry",
    "retry_job",
    "Retry",
    "Retried",
    lambda u, ids: _jobs(u, ids).exclude(task_path__in=OWN_TASKS).retry_failed(),
    retry.STATES,
    left_alone="had changed state in the meantime, or another job has their unique key,",
)
RUN = JobAction(
    "run",
    "run_job",
    "Run now",
    "Dispatched",
    lambda u, ids: _jobs(u, ids).run_now(),
    run_now.STATES,
)
CANCEL = JobAction(
    "cancel",
    "cancel_job",
    "Cancel",
    "Cancelled",
    lambda u, ids: _jobs(u, ids).cancel(),
    cancel.STATES,
    warning=" Running tasks are interrupted.",
)
DISCARD = JobAction(
    "discard",
    "discard_job",
    "Discard",
    "Discarded",
    lambda u, ids: _jobs(u, ids).discard(),
    discard.STATES,
    flag=DELETION,
    warning=" This cannot be undone.",
)
MOVE = JobAction(
    "move",
    "change_job",
    "Move",
    "Moved",
    lambda u, ids, **given: move.move(_jobs(u), ids, move.changes_of(**given)),
    move.STATES,
    reorders=True,
    form=MoveForm,
)
RESCHEDULE = JobAction(
    "reschedule",
    "change_job",
    "Reschedule",
    "Rescheduled",
    lambda u, ids, due: reschedule.reschedule(_jobs(u), ids, due),
    reschedule.STATES,
    reorders=True,
    form=RescheduleForm,
)
COPY = JobAction(
    "copy",
    "enqueue_job",
    "Enqueue again",
    "Enqueued again",
    lambda u, ids: _copied(u, ids),
    (),
    warning=" Each becomes a new job with the same call.",
    refused="needs the results of others, or is none that can be repeated",
    left_alone="cannot be copied, or another job has their unique key,",
)
JOB_ACTIONS = {
    action.name: action for action in (RETRY, RUN, MOVE, RESCHEDULE, COPY, CANCEL, DISCARD)
}
