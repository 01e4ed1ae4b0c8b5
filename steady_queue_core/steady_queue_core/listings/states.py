"""The states of jobs: the rows of each, and the index order in which they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from django.db.models import Model, Q, QuerySet

from ..models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)
from ..models.execution import Execution
from .counts import CAP, BoundedCount, count_each
from .keyset import Order
from .visibility import VisibleJobs


@dataclass(frozen=True)
class State:
    """A state of jobs, or all states together."""

    name: str
    label: str
    order: Order
    #: Condition on the rows of the ordering's model.
    rows: Q = field(default_factory=Q)
    #: Jobs with a row in this model are in that state instead.
    unless: type[Execution] | None = None
    #: Filters that an index serves, by parameter: the column, and the ordering to use with it.
    indexed: Mapping[str, tuple[str, Order]] = field(default_factory=dict)
    #: Names of the actions on jobs in this state.
    actions: frozenset[str] = frozenset()

    @property
    def relation(self) -> str | None:
        """The relation from a job to its execution in this state."""
        model: type[Model] = self.order.model
        return None if model is Job else str(model._meta.model_name)

    def selected(self, using: str) -> QuerySet[Any]:
        """Return the rows of the ordering's model."""
        return self.order.model._default_manager.using(using).filter(self.rows)


#: What can be done with jobs that wait, and with any.
OF_WAITING, OF_ANY = frozenset({"move", "reschedule"}), frozenset({"copy"})
ALL = State("", "All", Order(Job, ("-id",)))
READY = State(
    "ready",
    "Ready",
    Order(ReadyExecution, ("rank", "turn", "job_id")),
    indexed={"queue": ("queue_name", Order(ReadyExecution, ("rank", "turn", "job_id")))},
    actions=frozenset({"cancel", "discard"}) | OF_WAITING | OF_ANY,
)
SCHEDULED = State(
    "scheduled",
    "Scheduled",
    Order(ScheduledExecution, ("due_at", "rank", "job_id")),
    actions=frozenset({"run", "cancel", "discard"}) | OF_WAITING | OF_ANY,
)
BLOCKED = State(
    "blocked",
    "Blocked",
    Order(BlockedExecution, ("job_id",)),
    indexed={"key": ("concurrency_key", Order(BlockedExecution, ("rank", "job_id")))},
    actions=frozenset({"run", "cancel", "discard"}) | OF_WAITING | OF_ANY,
)
WAITING = State(
    "waiting",
    "Waiting",
    Order(WaitingExecution, ("job_id",)),
    actions=frozenset({"cancel", "discard"}) | OF_WAITING | OF_ANY,
)
RUNNING = State(
    "running",
    "Running",
    Order(ClaimedExecution, ("job_id",)),
    actions=frozenset({"cancel"}) | OF_ANY,
)
FAILED = State(
    "failed",
    "Failed",
    Order(FailedExecution, ("-created_at", "-job_id")),
    indexed={
        "error": (
            "fingerprint",
            Order(FailedExecution, ("-created_at", "-job_id"), lead="-fingerprint"),
        )
    },
    actions=frozenset({"retry", "discard"}) | OF_ANY,
)
FINISHED = State(
    "finished",
    "Finished",
    Order(Job, ("-finished_at", "-id")),
    rows=Q(finished_at__isnull=False),
    unless=FailedExecution,
    actions=OF_ANY,
)
STATES = {
    state.name: state
    for state in (ALL, READY, SCHEDULED, BLOCKED, WAITING, RUNNING, FAILED, FINISHED)
}

#: The rows of the states that a job has before it has finished.
EXECUTIONS: dict[str, type[Execution]] = {
    state.name: cast(type[Execution], state.order.model)
    for state in STATES.values()
    if state.relation
}


def count_states(using: str, visible: VisibleJobs) -> dict[str, BoundedCount]:
    """Count the jobs in each state, in one statement."""
    selections = [state.selected(using).order_by() for state in STATES.values()]
    found = count_each(using, selections, visible=visible)
    counts = dict(zip(STATES, found, strict=True))
    ended, failed = counts["finished"], counts["failed"]
    # Failed jobs have a finished_at, too.
    left = max(0, ended.number - failed.number)
    counts["finished"] = BoundedCount(min(left, CAP), ended.exact and failed.exact)
    return counts
