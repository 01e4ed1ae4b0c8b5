"""Backends for tests: they need no database, and keep jobs in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from threading import get_ident
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from ..backend import SteadyQueueBackend
from ..backend_options import BackendOptions
from ..compat import Task, TaskResult, TaskResultDoesNotExist
from ..dialects import ClaimedJob, Ending, Outcome
from ..encoded_call import EncodedCall
from ..models.job import parse_job_id
from ..tasks.notes import Store
from ..tasks.results import task_result_of
from .attempts import perform
from .memory import MemoryJob, memory_of
from .memory_jobs import MemoryJobs
from .memory_store import MemoryStore

RAISE_ERRORS = "raise_errors"


class MemoryBackend(SteadyQueueBackend):
    """A backend whose jobs are gone with its process."""

    stores_jobs = False
    jobs_class = MemoryJobs

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.jobs = self.jobs_class(self)

    @property
    def caller_database(self) -> str:
        opened = _open_transactions()
        return DEFAULT_DB_ALIAS if not opened or DEFAULT_DB_ALIAS in opened else opened[0]

    @property
    def results(self) -> list[TaskResult]:
        """What was enqueued, in that order."""
        return list(self.results_of(list(memory_of(self).jobs)).values())

    def clear(self) -> None:
        """Forget all jobs."""
        memory = memory_of(self)
        with memory.lock:
            memory.jobs.clear()

    def checkpoints(self, using: str | None = None) -> Store:
        return MemoryStore(memory_of(self))

    def get_result(self, result_id: str) -> TaskResult:
        job_id = parse_job_id(result_id)
        found = self.results_of([] if job_id is None else [job_id])
        if not found:
            raise TaskResultDoesNotExist(result_id)
        return found[job_id]

    def cancel(self, result_id: str) -> bool:
        return self.jobs.cancel(int(self.get_result(result_id).id))

    def _storage(self) -> tuple[Any, Any]:
        return None, memory_of(self)

    def results_of(self, job_ids: Sequence[int]) -> dict[int | None, TaskResult]:
        memory = memory_of(self)
        with memory.lock:
            jobs = {each: memory.jobs[each] for each in job_ids if each in memory.jobs}
            return {job_id: task_result_of(job.row) for job_id, job in jobs.items()}

    def _waits_for_commit(self, task: Task) -> bool:
        # A test that may not use databases has no transaction to wait for.
        return bool(_open_transactions()) and super()._waits_for_commit(task)


class DummyBackend(MemoryBackend):
    """Keeps the calls, and runs nothing by itself."""


class _AtOnce(MemoryJobs):
    worker = "immediate"

    def may_take(self, job: MemoryJob) -> bool:
        """Each thread runs what it has enqueued, and what had to wait."""
        return job.thread in (None, get_ident())

    def settle(self, outcome: Outcome) -> None:
        """A retry follows at once, whatever its delay."""
        job = self.memory.held(outcome.job_id, outcome.token)
        if job is not None:
            job.skipped += timedelta(seconds=outcome.delay)
        super().settle(outcome._replace(delay=0.0))

    def present_of(self, claim: ClaimedJob) -> datetime:
        """Return the time by which a job sleeps."""
        return self.present() + self.memory.jobs[claim.job_id].skipped


class ImmediateBackend(MemoryBackend):
    """Runs each task before ``enqueue()`` returns."""

    jobs_class = _AtOnce
    jobs: _AtOnce

    @cached_property
    def settings(self) -> BackendOptions:
        options = {name: self.options[name] for name in self.options if name != RAISE_ERRORS}
        return BackendOptions.parse(self.alias, options)

    def insert(self, calls: Sequence[EncodedCall]) -> list[TaskResult]:
        results = super().insert(calls)
        first_error: BaseException | None = None
        while (claim := self.jobs.claim()) is not None:
            done = perform(self.jobs, claim, self.jobs.present_of(claim))
            if done.outcome.ending is Ending.FAILED:
                first_error = first_error or done.error
        for result in results:
            self._refresh(result)
        if first_error is not None and self.options.get(RAISE_ERRORS):
            raise first_error
        return results

    def _refresh(self, result: TaskResult) -> None:
        try:
            result.refresh()
        except TaskResultDoesNotExist:
            return  # It was discarded, or is not to be preserved.


def _open_transactions() -> list[str]:
    return [c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block]
