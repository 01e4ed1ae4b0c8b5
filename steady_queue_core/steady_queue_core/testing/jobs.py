"""The interface to the jobs of a test, in a database or in memory."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from ..backend import SteadyQueueBackend
from ..compat import TaskResult
from ..dialects import ClaimedJob, Outcome, QueueSelector


class Jobs(Protocol):
    """The operations of a worker with one thread."""

    #: The name of the worker.
    worker: str

    def present(self) -> datetime:
        """Return the time by which jobs are due; aware, in UTC."""

    def claim(self) -> ClaimedJob | None:
        """Take the next job that is ready."""

    def backend_of(self, claim: ClaimedJob) -> SteadyQueueBackend:
        """Return the backend that a job was enqueued through."""

    def settle(self, outcome: Outcome) -> None:
        """End a claim."""

    def next_due(self) -> datetime | None:
        """Return when the next job is due that waits for its time."""

    def make_due(self, until: datetime) -> None:
        """Make the jobs ready that are due by then."""

    def keeps(self, result: TaskResult) -> bool:
        """Whether a job that was just enqueued is here."""

    def put_off(self, job_id: int, due: datetime) -> None:
        """Reschedule a scheduled job."""


def matching(selector: QueueSelector, names: Iterable[str]) -> list[str]:
    """Return those of the queues ``names`` that ``selector`` serves, in its order."""
    known = sorted(set(names))
    served = selector.matching(
        lambda prefix: [name for name in known if name.startswith(prefix)], frozenset()
    )
    return [name for name in served if name in known]


def selector_of(queues: str | Iterable[str] | None) -> QueueSelector:
    """Return the selector of ``queues``, in the form of a worker's setting."""
    if queues is None:
        return QueueSelector()
    return QueueSelector.of((queues,) if isinstance(queues, str) else tuple(queues))
