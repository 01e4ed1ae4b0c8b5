"""What is in memory of the jobs of each backend for tests, for all threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import count
from threading import RLock, get_ident
from typing import Any, cast

from django.core.signals import setting_changed

from ..backend import SteadyQueueBackend
from ..dialects import (
    EnqueuedJob,
    FairKey,
    JobKey,
    KeyTaken,
    Level,
    NewJob,
    StepRecord,
    TurnKey,
)
from ..dialects.portable import aware, due_at
from ..dialects.portable.enqueue import RESOLUTION, job_row
from ..dialects.portable.replacing import FIELDS, NoPermit
from ..dialects.unique_enqueue import UniqueEnqueue
from ..features.fair.queues import FairQueues
from ..models import Job
from ..models.job import RESULT
from .memory_keys import MemoryKeys


class State(Enum):
    """Where a job stands."""

    SCHEDULED = "scheduled"
    READY = "ready"
    BLOCKED = "blocked"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(eq=False)
class MemoryJob:
    """A job in memory: the row that it would have in a database, and where it stands."""

    #: Never saved; it has its claim, its failure and its checkpoint along.
    row: Job
    state: State = State.SCHEDULED
    due: datetime | None = None
    #: The token of the last claim.
    token: int = 0
    #: Its place among the ready jobs of its rank.
    turn: float = 0.0
    #: What is stored of its steps, by name.
    steps: dict[str, StepRecord] = field(default_factory=dict)
    #: For how long it was to wait, and did not.
    skipped: timedelta = timedelta(0)
    #: The thread that has enqueued it, unless it had to wait.
    thread: int | None = None

    @property
    def place(self) -> tuple[int, float]:
        """The sort key of the claim order."""
        return self.row.rank, self.turn

    def put(self, name: str, row: Any) -> None:
        """Let a row belong to that of the job, under the name of the relation; ``None``: none."""
        cast(Any, Job._meta.get_field(name)).set_cached_value(self.row, row)


class Memory:
    """The jobs of one alias of ``TASKS``, their unique keys, and the next turns of fair keys."""

    def __init__(self, fair_queues: FairQueues | None) -> None:
        self.jobs: dict[int, MemoryJob] = {}
        self.ids = count(1)
        self.keys = MemoryKeys(self, self.jobs)
        self.turns: dict[TurnKey, float] = {}
        self.fair_queues = fair_queues
        self.lock = RLock()

    def current_time(self, connection: object = None) -> datetime:
        """Return the present time; aware, in UTC."""
        return datetime.now(UTC)

    def in_state(self, state: State) -> list[MemoryJob]:
        """Return the jobs that stand there."""
        return [job for job in self.jobs.values() if job.state is state]

    def held(self, job_id: int, token: int) -> MemoryJob | None:
        """Return the job of a claim, unless that was lost."""
        job = self.jobs.get(job_id)
        return job if job and job.state is State.RUNNING and job.token == token else None

    def ring_after_commit(self, connection: object, queue_names: Sequence[str]) -> None:
        """Nobody has to be woken."""

    def count_ready(self, connection: object, queue_name: str, limit: int) -> int:
        """Count the ready jobs of a queue."""
        with self.lock:
            return sum(job.row.queue_name == queue_name for job in self.in_state(State.READY))

    def enqueue(
        self, connection: object, jobs: Sequence[NewJob], *, refuses: bool = True
    ) -> list[EnqueuedJob]:
        """Keep jobs, all or none. Raises ``KeyTaken``; if none ``refuses``, a job whose key is
        taken becomes the one that has it."""
        with self.lock:
            unique = _UniqueEnqueue(self, jobs, refuses=refuses)
            new = unique.lock()
            if isinstance(new, KeyTaken):
                raise new
            return unique.take(self.insert_jobs(None, new))

    def insert_jobs(self, connection: object, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
        """Keep jobs, whatever their unique keys are, but for those that find no permit and must
        not wait."""
        present = self.current_time()
        return [EnqueuedJob(self._insert(job, present), present) for job in jobs]

    def _insert(self, new: NewJob, present: datetime) -> int | None:
        job = MemoryJob(job_row(new, present, due_at(new, present)))
        if self._is_refused(job.row, present):
            return None
        job.row.pk = next(self.ids)
        for name in RESULT:
            job.put(name, None)
        self.jobs[job.row.pk] = job
        self._arrive(job, present)
        return int(job.row.pk)

    def become(self, job_id: int, new: NewJob) -> bool:
        """Let a job that has not started be another one; return whether that finds a permit, or
        may wait for one."""
        present, job = self.current_time(), self.jobs[job_id]
        row = job_row(new, present, due_at(new, present))
        if self._is_refused(row, present, instead_of=job):
            return False
        for name in FIELDS:
            setattr(job.row, name, getattr(row, name))
        self._arrive(job, present)
        self.admit()  # It may have had a permit of another key.
        return True

    def _is_refused(self, row: Job, present: datetime, instead_of: MemoryJob | None = None) -> bool:
        if not row.concurrency_discards or _due(row, present) is not None:
            return False
        return not self.has_room(row, instead_of)

    def _arrive(self, job: MemoryJob, present: datetime) -> None:
        job.state, job.due, job.thread = State.SCHEDULED, _due(job.row, present), None
        if job.due is None:
            self.release(job)
        if job.state is State.READY:
            job.thread = get_ident()

    def release(self, job: MemoryJob) -> None:
        """Make a job ready, or blocked if its limit is reached."""
        job.due = job.thread = None
        job.state = State.READY if self.has_room(job.row, job) else State.BLOCKED
        if job.state is State.READY:
            job.turn = self._turn_of(job)

    def admit(self) -> None:
        """Make the blocked jobs ready for which there are permits."""
        for job in sorted(self.in_state(State.BLOCKED), key=lambda job: (job.row.rank, job.row.pk)):
            self.release(job)

    def has_room(self, row: Job, without: MemoryJob | None = None) -> bool:
        """Whether there is a permit for a job, or would be ``without`` another one."""
        key, limit = row.concurrency_key, row.concurrency_limit
        if key is None or limit is None:
            return True
        holding = (State.READY, State.RUNNING)
        held = [job for job in self.jobs.values() if job.row.concurrency_key == key]
        return sum(job.state in holding and job is not without for job in held) < limit

    def _turn_of(self, job: MemoryJob) -> float:
        """Return the place of a job that becomes ready: in a fair queue the next turn of its key,
        as ``dialects.turns`` describes it, else its id."""
        row, queues = job.row, self.fair_queues
        weight = None if queues is None else queues.weight_of(row.queue_name)
        if weight is None:
            return float(row.pk)
        level = Level(row.queue_name, row.rank)
        key = level, FairKey.read(row.metadata) or ""
        others = [other for other in self.in_state(State.READY) if other is not job]
        turns = [each.turn for each in others if (each.row.queue_name, each.row.rank) == level]
        turn = max(min(turns, default=float(max(self.jobs))), self.turns.get(key, 0.0))
        self.turns[key] = turn + 1 / weight
        return turn


class _UniqueEnqueue(UniqueEnqueue):
    """Enqueues jobs of which some have unique keys."""

    def __init__(self, memory: Memory, jobs: Sequence[NewJob], *, refuses: bool) -> None:
        keys = [JobKey.read(job.metadata) for job in jobs]
        super().__init__(cast(Any, None), cast(Any, memory), jobs, keys, refuses=refuses)
        self.memory, self.rows = memory, memory.keys

    def _give_way(self) -> None:
        """Wait for nobody: a claim ends a key that is to be freed before the start."""

    def _become(self, replacing: Mapping[int, NewJob]) -> dict[int, Any]:
        refused = [pk for pk, new in replacing.items() if not self.memory.become(pk, new)]
        if refused:
            raise NoPermit(refused)
        return {pk: self.memory.jobs[pk].row for pk in replacing}


def _due(row: Job, present: datetime) -> datetime | None:
    """Return when a new job is due, unless that is now."""
    at = row.scheduled_at and aware(row.scheduled_at)
    return at if at is not None and at - present >= RESOLUTION else None


#: By the alias of the backend. Of a backend there is one in each thread, and in each coroutine.
_memories: dict[str, Memory] = {}


def memory_of(backend: SteadyQueueBackend) -> Memory:
    """Return what is in memory for a backend."""
    found = _memories.get(backend.alias)
    if found is None:
        # Of two threads that come here at once, the first one decides.
        new = Memory(backend.settings.fair_queues)
        found = _memories.setdefault(backend.alias, new)
    return found


def forget() -> None:
    """Forget all jobs of all backends."""
    _memories.clear()


def _forget_with_settings(*, setting: str, **kwargs: Any) -> None:
    if setting == "TASKS":
        forget()


setting_changed.connect(_forget_with_settings, dispatch_uid="steady_queue_forget")
