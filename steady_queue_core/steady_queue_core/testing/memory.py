"""Jobs in memory, under the same rules as the dialects' jobs in databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import wraps
from itertools import count
from threading import RLock, get_ident
from typing import Any, TypeVar, cast

from django.core.signals import setting_changed

from .. import arguments
from ..backend import SteadyQueueBackend
from ..compat import TaskResult, TaskResultStatus
from ..dialects import (
    CheckpointChange,
    ClaimedJob,
    Ending,
    EnqueuedJob,
    JobKey,
    NewJob,
    Outcome,
    QueueSelector,
    StepRecord,
)
from ..encoded_call import EncodedCall
from ..errors import CANCELLED_BEFORE_START, TaskCancelled
from ..payloads import PayloadCodec, result_scope
from ..processes.worker.error_text import appended, describe
from ..progress import Progress
from ..queue_lengths import Full, Wanted
from ..tasks.metadata import JobMetadata
from ..tasks.results import task_errors, workers_of
from ..tasks.task_result import SteadyQueueTaskResult
from ..timezones import from_utc
from .jobs import matching
from .memory_keys import MemoryKeys

F = TypeVar("F", bound=Callable[..., Any])


class State(Enum):
    """Where a job stands."""

    SCHEDULED = "scheduled"
    READY = "ready"
    BLOCKED = "blocked"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(eq=False, kw_only=True)
class Job:
    """A call that was enqueued, and what became of it."""

    id: int
    new: NewJob
    result: TaskResult
    enqueued_at: datetime
    state: State = State.SCHEDULED
    due: datetime | None = None
    token: int = 0
    attempts: int = 0
    errors: str | None = None
    worker_ids: str | None = None
    started_at: datetime | None = None
    metadata: str | None = None
    #: The token of the attempt that has stored something last, and its encoded checkpoint.
    stored: tuple[int, str | None] | None = None
    #: What is stored of its steps, by name.
    steps: dict[str, StepRecord] = field(default_factory=dict)
    #: For how long it was to wait, and did not.
    skipped: timedelta = timedelta(0)
    #: The thread that has enqueued it, unless it had to wait.
    thread: int | None = None

    @property
    def key(self) -> str | None:
        """Its concurrency key."""
        return self.new.limit.key if self.new.limit else None

    @property
    def has_not_begun(self) -> bool:
        """Whether it waits for its first start."""
        waits = self.state in (State.SCHEDULED, State.READY, State.BLOCKED)
        return waits and self.started_at is None

    @property
    def turn(self) -> tuple[int, int]:
        """The sort key of the claim order. Fair queues have no other one here."""
        return self.new.rank, self.id


class Memory:
    """The jobs of one alias of ``TASKS``, for all threads."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.ids = count(1)
        self.keys = MemoryKeys(self.jobs.__contains__)
        self.lock = RLock()


#: By the alias of the backend. Of a backend there is one in each thread, and in each coroutine.
_memories: dict[str, Memory] = {}


def forget() -> None:
    """Forget all jobs of all backends."""
    _memories.clear()


def _forget_with_settings(*, setting: str, **kwargs: Any) -> None:
    if setting == "TASKS":
        forget()


setting_changed.connect(_forget_with_settings, dispatch_uid="steady_queue_forget")


def locked(method: F) -> F:
    """Run the method under the lock of the memory."""

    @wraps(method)
    def locking(self: MemoryJobs, *args: Any) -> Any:
        with self.memory.lock:
            return method(self, *args)

    return cast(F, locking)


class MemoryJobs:
    """The jobs of one backend, as a worker of some queues finds them."""

    def __init__(self, backend: SteadyQueueBackend, selector: QueueSelector | None = None) -> None:
        self.backend, self.selector = backend, selector or QueueSelector()

    @property
    def memory(self) -> Memory:
        return _memories.setdefault(self.backend.alias, Memory())

    @property
    def jobs(self) -> dict[int, Job]:
        return self.memory.jobs

    def serving(self, selector: QueueSelector) -> MemoryJobs:
        """Return the same jobs for other queues."""
        return type(self)(self.backend, selector)

    def may_take(self, job: Job) -> bool:
        """Whether the calling thread may run a job that is ready."""
        return True

    @locked
    def enqueue_all(self, calls: Sequence[tuple[EncodedCall, NewJob]]) -> list[EnqueuedJob]:
        """Keep calls, all or none. Raises ``KeyTaken``."""
        self.memory.keys.require_free([new for _, new in calls], self.present())
        return [self.enqueue(call, new) for call, new in calls]

    @locked
    def enqueue(self, call: EncodedCall, new: NewJob) -> EnqueuedJob:
        """Keep a call, unless its limit is reached and it is not to wait, or another job has its
        unique key."""
        at, key = self.present(), JobKey.read(new.metadata)
        holder = self.jobs.get(self.memory.keys.holder_of(key, at) or 0)
        if holder is not None:
            if key is not None and key.replaces and holder.has_not_begun:
                if self._is_refused(new, at, instead_of=holder):
                    return EnqueuedJob(None, at)
                self._set_call(holder, call, new, at)
            return EnqueuedJob(holder.id, holder.enqueued_at, is_duplicate=True)
        if self._is_refused(new, at):
            return EnqueuedJob(None, at)
        job_id = next(self.memory.ids)
        result = self.backend.new_result(call, EnqueuedJob(job_id, at))
        job = Job(id=job_id, new=new, result=result, enqueued_at=at)
        self._set_call(job, call, new, at)
        self.jobs[job_id] = job
        self.memory.keys.take(key, job_id)
        return EnqueuedJob(job_id, at)

    def _is_refused(self, new: NewJob, at: datetime, instead_of: Job | None = None) -> bool:
        """Whether a call finds no permit, and must not wait."""
        due = _due(new, at)
        if new.limit is None or not new.limit.discards or (due is not None and due > at):
            return False
        return not self._room_for(new, instead_of)

    def _set_call(self, job: Job, call: EncodedCall, new: NewJob, at: datetime) -> None:
        """Let a job that has not started be that of ``call``."""
        args, kwargs = arguments.decode_call(call.arguments, resolve_models=False)
        result = self.backend.new_result(call, EnqueuedJob(job.id, at))
        object.__setattr__(result, "args", args)
        object.__setattr__(result, "kwargs", kwargs)
        job.new, job.metadata, job.result, job.enqueued_at = new, new.metadata, result, at
        job.state, job.due, job.thread = State.SCHEDULED, _due(new, at), None
        if job.due is None or job.due <= at:
            self._release(job)
        if job.state is State.READY:
            job.thread = get_ident()

    @locked
    def first_full(self, wanted: Sequence[Wanted]) -> Full | None:
        """Return a queue that has no room for the jobs that are wanted in it."""
        lengths = Counter(
            job.new.queue_name for job in self.jobs.values() if job.state is State.READY
        )
        for each in wanted:
            length = lengths[each.queue_name]
            if length + max(1, each.jobs) > each.limit:
                return Full(each, length)
        return None

    @locked
    def results(self) -> list[TaskResult]:
        """Return the results of all jobs, as they are now."""
        return [copied(job.result) for job in self.jobs.values()]

    @locked
    def results_of(self, job_ids: Sequence[int]) -> dict[int | None, TaskResult]:
        """Return the results of those of these jobs that exist."""
        return {
            job_id: copied(self.jobs[job_id].result) for job_id in job_ids if job_id in self.jobs
        }

    @locked
    def result(self, result_id: str) -> TaskResult | None:
        """Return one of them."""
        found = (job.result for job in self.jobs.values() if job.result.id == result_id)
        return next(map(copied, found), None)

    @locked
    def cancel(self, result_id: str) -> bool | None:
        """Cancel a job; return whether it was waiting or running, or ``None`` if there is none."""
        job = next((job for job in self.jobs.values() if job.result.id == result_id), None)
        if job is None or job.state is State.ENDED:
            return None if job is None else False
        job.new = replace(job.new, max_attempts=-abs(job.new.max_attempts))
        if job.state is not State.RUNNING:
            self.settle(_cancelled(job))
        return True

    @locked
    def clear(self) -> None:
        """Forget all jobs."""
        self.jobs.clear()

    def present(self) -> datetime:
        return datetime.now(UTC)

    @locked
    def claim(self) -> ClaimedJob | None:
        found = [job for job in self.jobs.values() if job.state is State.READY]
        excludes = self.selector.excludes
        ready = [j for j in found if self.may_take(j) and not excludes(j.new.queue_name)]
        if not self.selector.takes_all:
            queues = matching(self.selector, (job.new.queue_name for job in ready))
            ready = [job for job in ready if job.new.queue_name in queues[:1]]
        if not ready:
            return None
        job = min(ready, key=lambda job: job.turn)
        job.state, job.token = State.RUNNING, job.token + 1
        if self.memory.keys.start(job.id, job.metadata):
            job.started_at = job.started_at or self.present()
        object.__setattr__(job.result, "status", TaskResultStatus.RUNNING)
        return ClaimedJob(
            job_id=job.id,
            token=job.token,
            queue_name=job.new.queue_name,
            rank=job.new.rank,
            task_path=job.new.task_path,
            backend_name=job.new.backend_name,
            arguments=job.new.arguments,
            attempts=job.attempts,
            max_attempts=job.new.max_attempts,
            worker_ids=job.worker_ids,
            errors=job.errors,
            enqueued_at=job.enqueued_at,
            started_at=job.started_at,
            claimed_at=self.present(),
            concurrency_key=job.key,
            metadata=job.metadata,
        )

    @locked
    def save(self, change: CheckpointChange) -> bool:
        """Keep what an attempt says, unless it has lost its claim; return whether it has it."""
        job = self._held(change.job_id, change.token)
        if job is None:
            return False
        data = change.data if change.data is not None or job.stored is None else job.stored[1]
        job.stored = change.token, data
        if change.progress is not None:
            _tell(job, change.progress, self.present())
        return True

    @locked
    def load(self, job_id: int) -> tuple[int, Any] | None:
        """Return what the attempts of a job have kept."""
        job = self.jobs.get(job_id)
        return None if job is None else job.stored

    @locked
    def save_step(self, step: StepRecord) -> bool:
        """Keep a step of an attempt, unless it has lost its claim; return whether it has it."""
        job = self._held(step.job_id, step.token)
        if job is None:
            return False
        job.steps[step.name] = step
        return True

    @locked
    def load_steps(self, job_id: int) -> list[StepRecord]:
        """Return what the attempts of a job have kept of its steps."""
        job = self.jobs.get(job_id)
        return [] if job is None else list(job.steps.values())

    @locked
    def is_held(self, job_id: int, token: int) -> bool:
        """Return whether an attempt has its claim."""
        return self._held(job_id, token) is not None

    #: Nobody waits for a commit in order to see what is kept in memory.
    is_in_transaction = False

    def _held(self, job_id: int, token: int) -> Job | None:
        job = self.jobs.get(job_id)
        held = job is not None and job.state is State.RUNNING and job.token == token
        return job if held else None

    def backend_of(self, claim: ClaimedJob) -> SteadyQueueBackend:
        return self.backend

    @locked
    def settle(self, outcome: Outcome) -> None:
        job = self.jobs.get(outcome.job_id)
        if job is None:
            return  # The jobs were cleared meanwhile.
        job.attempts, job.errors = outcome.attempts, outcome.errors
        job.worker_ids, job.started_at = outcome.worker_ids, outcome.started_at
        if outcome.sequel is not None and outcome.sequel.metadata is not None:
            job.metadata = outcome.sequel.metadata
        if outcome.sequel is not None and outcome.sequel.progress is not None:
            _tell(job, outcome.sequel.progress, self.present())
        if outcome.sequel is not None and outcome.sequel.ends_checkpoint:
            job.stored = None
        for step in outcome.sequel.sleeps if outcome.sequel is not None else ():
            job.steps[step.name] = step
        ended = outcome.ending is not Ending.RETRIED
        job.state = State.ENDED if ended else State.SCHEDULED
        if not ended:
            job.due = self.present() + timedelta(seconds=outcome.delay)
        _update_result(job, outcome, self.present(), self.backend.payload_codec)
        self.memory.keys.end(outcome, job.metadata, self.present())
        if not ended and not outcome.delay:
            thread = job.thread
            self._release(job)
            job.thread = thread if job.state is State.READY else None
        elif outcome.ending is Ending.FINISHED and not outcome.preserve:
            del self.jobs[job.id]
        self._admit()
        for each in outcome.sequel.follow_ups if outcome.sequel is not None else ():
            each.stored = self._of(each.call).enqueue(each.call, each.job)

    def _of(self, call: EncodedCall) -> MemoryJobs:
        """Return the jobs that a call belongs to."""
        backend: Any = call.task.get_backend()
        return self if backend.alias == self.backend.alias else type(self)(backend)

    @locked
    def skip(self, job_id: int, delay: timedelta) -> None:
        """Take note that a job does not wait for a time that it was to wait for."""
        job = self.jobs.get(job_id)
        if job is not None:
            job.skipped += delay

    @locked
    def present_of(self, claim: ClaimedJob) -> datetime:
        """Return the time by which a job sleeps."""
        return self.present() + self.jobs[claim.job_id].skipped

    @locked
    def next_due(self) -> datetime | None:
        return min((job.due for job in self._scheduled() if job.due is not None), default=None)

    @locked
    def make_due(self, until: datetime) -> None:
        due = [job for job in self._scheduled() if job.due is not None and job.due <= until]
        for job in sorted(due, key=lambda job: (job.due, *job.turn)):
            limit = job.new.limit
            if limit and limit.discards and not job.attempts and not self._room_for(job.new):
                del self.jobs[job.id]
            else:
                self._release(job)

    def keeps(self, result: TaskResult) -> bool:
        return result.backend == self.backend.alias

    @locked
    def put_off(self, job_id: int, due: datetime) -> None:
        job = self.jobs.get(job_id)
        if job is not None and job.state is State.SCHEDULED:
            job.due = due

    def _scheduled(self) -> list[Job]:
        waiting = [job for job in self.jobs.values() if job.state is State.SCHEDULED]
        queues = matching(self.selector, (job.new.queue_name for job in waiting))
        return [job for job in waiting if job.new.queue_name in queues]

    def _release(self, job: Job) -> None:
        job.due = job.thread = None
        job.state = State.READY if self._room_for(job.new) else State.BLOCKED

    def _admit(self) -> None:
        for job in sorted(self.jobs.values(), key=lambda job: job.turn):
            if job.state is State.BLOCKED:
                self._release(job)

    def _room_for(self, new: NewJob, instead_of: Job | None = None) -> bool:
        if new.limit is None:
            return True
        holding = (State.READY, State.RUNNING)
        held = [j for j in self.jobs.values() if j.key == new.limit.key and j.state in holding]
        return len([job for job in held if job is not instead_of]) < new.limit.to


def _tell(job: Job, progress: Progress, present: datetime) -> None:
    told = replace(progress, updated_at=from_utc(present))
    object.__setattr__(job.result, "progress", told)


def _due(new: NewJob, at: datetime) -> datetime | None:
    return at + new.delay if new.delay is not None else new.run_at


def copied(result: TaskResult) -> TaskResult:
    """Return a result that does not change with ``result``."""
    copy: TaskResult = object.__new__(SteadyQueueTaskResult)
    for each in fields(result):
        value = getattr(result, each.name)
        object.__setattr__(copy, each.name, list(value) if isinstance(value, list) else value)
    return copy


def _cancelled(job: Job) -> Outcome:
    """Return the outcome of a job that is cancelled while it waits."""
    return Outcome(
        Ending.FAILED,
        job.id,
        job.token,
        job.new.queue_name,
        job.new.rank,
        attempts=job.attempts,
        worker_ids=job.worker_ids,
        errors=appended(job.errors, describe(TaskCancelled(CANCELLED_BEFORE_START))),
        started_at=job.started_at,
    )


def _opened(job: Job, outcome: Outcome, codec: PayloadCodec | None) -> str:
    stored = str(outcome.return_value)
    return stored if codec is None else codec.open(stored, result_scope(job.new, job.id))


def _update_result(
    job: Job, outcome: Outcome, present: datetime, codec: PayloadCodec | None
) -> None:
    status = {
        Ending.FINISHED: TaskResultStatus.SUCCESSFUL, Ending.FAILED: TaskResultStatus.FAILED,
    }.get(outcome.ending, TaskResultStatus.READY)  # fmt: skip
    news: dict[str, Any] = {
        "status": status,
        "errors": task_errors(outcome.errors),
        "worker_ids": workers_of(outcome.worker_ids),
        "started_at": outcome.started_at and from_utc(outcome.started_at),
        "last_attempted_at": outcome.last_attempted_at and from_utc(outcome.last_attempted_at),
        "finished_at": None if outcome.ending is Ending.RETRIED else from_utc(present),
        "metadata": JobMetadata.read(job.metadata).shown,
    }
    if outcome.return_value is not None:
        text = _opened(job, outcome, codec)
        news["_return_value"] = arguments.decode(text, resolve_models=False)
    for name, value in news.items():
        object.__setattr__(job.result, name, value)
