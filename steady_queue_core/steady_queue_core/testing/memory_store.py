"""The checkpoints and steps of jobs in memory."""

from __future__ import annotations

from typing import Any

from ..dialects import CheckpointChange, HeldRow, StepRecord
from ..dialects.portable import storable
from ..dialects.portable.held_rows import model_of
from .memory import Memory, MemoryJob


class MemoryStore:
    """What attempts store while they run. It is kept only for those that hold their claims."""

    #: Nobody waits for a commit in order to see what is kept in memory.
    is_in_transaction = False

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def save(self, change: CheckpointChange) -> bool:
        with self.memory.lock:
            job = self.memory.held(change.job_id, change.token)
            if job is not None:
                write(job, change.row, self.memory)
            return job is not None

    def load(self, job_id: int) -> tuple[int, Any] | None:
        job = self.memory.jobs.get(job_id)
        found = None if job is None else getattr(job.row, "checkpoint", None)
        return None if found is None else (found.token, found.data)

    def save_step(self, step: StepRecord) -> bool:
        with self.memory.lock:
            job = self.memory.held(step.job_id, step.token)
            if job is not None:
                job.steps[step.name] = step
            return job is not None

    def load_steps(self, job_id: int) -> list[StepRecord]:
        job = self.memory.jobs.get(job_id)
        return [] if job is None else list(job.steps.values())

    def is_held(self, job_id: int, token: int) -> bool:
        return self.memory.held(job_id, token) is not None


def write(job: MemoryJob, row: HeldRow, memory: Memory) -> None:
    """Change the checkpoint of a job, or the progress, or both."""
    new = model_of(row, storable(memory.current_time()))
    known = getattr(job.row, "checkpoint", None)
    if known is None:
        job.put("checkpoint", new)
    else:
        for name in row.changed:
            setattr(known, name, getattr(new, name))
