"""The jobs in memory as a worker finds them, under the same rules as those in databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar, cast

from ..backend import SteadyQueueBackend
from ..compat import TaskResult, task_backends
from ..dialects import (
    JOB_COLUMNS,
    ClaimedJob,
    Destination,
    Outcome,
    QueueSelector,
    Sequel,
)
from ..dialects.portable import aware, next_token, storable
from ..dialects.portable.checkpoints import last_progress
from ..dialects.portable.settle import job_changes
from ..dialects.portable.steps import begun_sleeps
from ..errors import CANCELLED_BEFORE_START, TaskCancelled
from ..models import ClaimedExecution, FailedExecution
from ..processes.worker import outcomes
from ..processes.worker.error_text import describe
from .jobs import matching
from .memory import Memory, MemoryJob, State, memory_of
from .memory_store import write

F = TypeVar("F", bound=Callable[..., Any])


def locked(method: F) -> F:
    """Run the method under the lock of the memory."""

    @wraps(method)
    def locking(self: MemoryJobs, *args: Any) -> Any:
        with self.memory.lock:
            return method(self, *args)

    return cast(F, locking)


class MemoryJobs:
    """The jobs of one backend, as a worker of some queues finds them."""

    worker = "testing"

    def __init__(self, backend: SteadyQueueBackend, selector: QueueSelector | None = None) -> None:
        self.backend, self.selector = backend, selector or QueueSelector()

    @property
    def memory(self) -> Memory:
        return memory_of(self.backend)

    def serving(self, selector: QueueSelector) -> MemoryJobs:
        """Return the same jobs for other queues."""
        found = type(self)(self.backend, selector)
        found.worker = MemoryJobs.worker
        return found

    def may_take(self, job: MemoryJob) -> bool:
        """Whether the calling thread may run a job that is ready."""
        return True

    def present(self) -> datetime:
        return self.memory.current_time()

    @locked
    def claim(self) -> ClaimedJob | None:
        ready = [
            job
            for job in self.memory.in_state(State.READY)
            if self.may_take(job) and not self.selector.excludes(job.row.queue_name)
        ]
        if not self.selector.takes_all:
            queues = matching(self.selector, (job.row.queue_name for job in ready))
            ready = [job for job in ready if job.row.queue_name in queues[:1]]
        return self._take(min(ready, key=lambda job: job.place)) if ready else None

    def _take(self, job: MemoryJob) -> ClaimedJob:
        """Claim a job, and free the unique key that it has until it starts."""
        present, row = self.present(), job.row
        job.state, job.token = State.RUNNING, next_token(job.token)
        execution = ClaimedExecution(token=job.token, created_at=storable(present))
        execution.worker_name = self.worker
        job.put("claimedexecution", execution)
        columns = [getattr(row, name) for name in JOB_COLUMNS]
        claim = ClaimedJob.from_values(
            [row.pk, job.token, row.queue_name, row.rank, *columns],
            present,
            lambda value, default: aware(value),
        )
        if (key := claim.unique_key) is not None and key.ends_at_start:
            self.memory.keys.free({key.key: claim.job_id})
            row.started_at = row.started_at or storable(present)
        return claim

    def backend_of(self, claim: ClaimedJob) -> SteadyQueueBackend:
        return self.backend

    @locked
    def settle(self, outcome: Outcome) -> None:
        job = self.memory.held(outcome.job_id, outcome.token)
        if job is None:
            return  # The jobs were cleared meanwhile.
        job.put("claimedexecution", None)
        if outcome.deletes_job:
            del self.memory.jobs[outcome.job_id]
        elif outcome.updates_job:
            self._write(job, outcome)
        self._move(job, outcome)
        if outcome.unique_key is not None:
            self.memory.keys.end([outcome])
        if outcome.is_limited:
            self.memory.admit()
        for each in (outcome.sequel or Sequel()).follow_ups:
            backend: Any = task_backends[each.job.backend_name]
            [each.stored] = memory_of(backend).enqueue(None, [each.job], refuses=False)

    def _write(self, job: MemoryJob, outcome: Outcome) -> None:
        """Store what an attempt leaves to its job."""
        for name, value in job_changes(outcome, self.present()).items():
            setattr(job.row, name, value)
        if outcome.destination is Destination.FAILED:
            job.put("failedexecution", FailedExecution(message=outcome.message))
        for row in last_progress([outcome]):
            write(job, row, self.memory)
        for step in begun_sleeps([outcome]):
            job.steps[step.name] = step
        sequel, checkpoint = outcome.sequel or Sequel(), getattr(job.row, "checkpoint", None)
        if sequel.metadata is not None:
            job.row.metadata = sequel.metadata
        if sequel.ends_checkpoint and checkpoint is not None:
            checkpoint.data = None

    def _move(self, job: MemoryJob, outcome: Outcome) -> None:
        """Let a job go where its claim has ended."""
        if outcome.completes_job:
            job.state = State.ENDED
        elif outcome.destination is Destination.SCHEDULED:
            job.state, job.due = State.SCHEDULED, self.present() + timedelta(seconds=outcome.delay)
        else:
            thread = job.thread
            self.memory.release(job)
            job.thread = thread if job.state is State.READY else None

    @locked
    def cancel(self, job_id: int) -> bool:
        """Cancel a job; return whether it was waiting or running."""
        job = self.memory.jobs[job_id]
        if job.state is State.ENDED:
            return False
        job.row.max_attempts = -abs(job.row.max_attempts)
        if job.state is not State.RUNNING:
            error = describe(TaskCancelled(CANCELLED_BEFORE_START))
            self.settle(outcomes.never_started(self._take(job), error))
        return True

    @locked
    def next_due(self) -> datetime | None:
        return min((job.due for job in self._scheduled() if job.due is not None), default=None)

    @locked
    def make_due(self, until: datetime) -> None:
        due = [job for job in self._scheduled() if job.due is not None and job.due <= until]
        for job in sorted(due, key=lambda job: (job.due, job.row.rank, job.row.pk)):
            row = job.row
            if row.concurrency_discards and not row.attempts and not self.memory.has_room(row):
                del self.memory.jobs[row.pk]
            else:
                self.memory.release(job)

    def keeps(self, result: TaskResult) -> bool:
        return result.backend == self.backend.alias

    @locked
    def put_off(self, job_id: int, due: datetime) -> None:
        job = self.memory.jobs.get(job_id)
        if job is not None and job.state is State.SCHEDULED:
            job.due = due

    def _scheduled(self) -> list[MemoryJob]:
        waiting = self.memory.in_state(State.SCHEDULED)
        queues = matching(self.selector, (job.row.queue_name for job in waiting))
        return [job for job in waiting if job.row.queue_name in queues]
