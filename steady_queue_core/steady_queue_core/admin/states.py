"""The states of jobs, each as a list: which rows it has, and in which order of an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model, Q, QuerySet

from ..models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)
from ..models.execution import Execution
from .counts import CAP, Tally, tallies
from .keyset import Order
from .scope import Scope


@dataclass(frozen=True)
class State:
    """One state, or all of them together."""

    name: str
    label: str
    order: Order
    #: What is true of the rows of the order's model.
    rows: Q = field(default_factory=Q)
    #: Jobs with a row here are in that state, not in this one.
    unless: type[Execution] | None = None
    #: Orders for those with one value in a column, by the parameter that names it.
    narrowed: Mapping[str, tuple[str, Order]] = field(default_factory=dict)
    #: What can be done with the jobs of the list.
    actions: frozenset[str] = frozenset()

    @property
    def relation(self) -> str | None:
        """The relation from a job to its row in this state."""
        model: type[Model] = self.order.model
        return None if model is Job else str(model._meta.model_name)

    def selected(self, using: str) -> QuerySet[Any]:
        """Return the rows of the order's model."""
        return self.order.model._default_manager.using(using).filter(self.rows)


ALL = State("", "All", Order(Job, ("-id",)))
READY = State(
    "ready",
    "Ready",
    Order(ReadyExecution, ("rank", "job_id")),
    narrowed={"queue": ("queue_name", Order(ReadyExecution, ("rank", "job_id")))},
    actions=frozenset({"discard"}),
)
SCHEDULED = State(
    "scheduled",
    "Scheduled",
    Order(ScheduledExecution, ("due_at", "rank", "job_id")),
    actions=frozenset({"run", "discard"}),
)
BLOCKED = State(
    "blocked",
    "Blocked",
    Order(BlockedExecution, ("job_id",)),
    narrowed={"key": ("concurrency_key", Order(BlockedExecution, ("rank", "job_id")))},
    actions=frozenset({"run", "discard"}),
)
RUNNING = State("running", "Running", Order(ClaimedExecution, ("job_id",)))
FAILED = State(
    "failed",
    "Failed",
    Order(FailedExecution, ("-created_at", "-job_id")),
    actions=frozenset({"retry", "discard"}),
)
FINISHED = State(
    "finished",
    "Finished",
    Order(Job, ("-finished_at", "-id")),
    rows=Q(finished_at__isnull=False),
    unless=FailedExecution,
)
STATES = {
    state.name: state for state in (ALL, READY, SCHEDULED, BLOCKED, RUNNING, FAILED, FINISHED)
}


def tallies_of_states(using: str, scope: Scope) -> dict[str, Tally]:
    """Count the jobs of each state, in one statement."""
    selections = [state.selected(using).order_by() for state in STATES.values()]
    found = tallies(using, selections, scope=scope)
    counts = dict(zip(STATES, found, strict=True))
    ended, failed = counts["finished"], counts["failed"]
    # Failed jobs have ended, too.
    left = max(0, ended.number - failed.number)
    counts["finished"] = Tally(min(left, CAP), ended.exact and failed.exact)
    return counts
