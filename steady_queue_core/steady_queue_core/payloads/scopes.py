"""Scopes: what a payload belongs to. A signature covers the scope, so that a payload is refused
anywhere else."""

from __future__ import annotations

from typing import Any, TypeAlias

#: The kind of the payload, and the columns that it depends on.
Scope: TypeAlias = tuple[str | int | None, ...]


def call_scope(job: Any, concurrency_key: str | None) -> Scope:
    """Return the scope of a job's arguments. The id of the job is not known when they are signed.

    ``job`` is a ``NewJob``, a ``ClaimedJob`` or a ``Job``.
    """
    return (
        "call",
        job.task_path,
        job.backend_name,
        job.queue_name,
        job.rank,
        abs(job.max_attempts),  # Negated when the job is cancelled.
        concurrency_key,
    )


def result_scope(job: Any, job_id: int) -> Scope:
    """Return the scope of a job's return value."""
    return _of_one_job("result", job, job_id)


def checkpoint_scope(job: Any, job_id: int) -> Scope:
    """Return the scope of what a job has stored for its next attempt."""
    return _of_one_job("checkpoint", job, job_id)


def step_scope(job: Any, job_id: int, name: str, *, is_sleep: bool) -> Scope:
    """Return the scope of what a step of a job has returned, or of when a sleep is over."""
    return (*_of_one_job("sleep" if is_sleep else "step", job, job_id), name)


def recurring_scope(row: Any) -> Scope:
    """Return the scope of the arguments in the row of a recurring task."""
    return (
        "recurring",
        row.key,
        row.task_path,
        row.backend_name,
        row.queue_name,
        row.priority,
        row.schedule,
        row.timezone,
        row.catch_up,
    )


def _of_one_job(kind: str, job: Any, job_id: int) -> Scope:
    return kind, job_id, job.task_path, job.backend_name, job.queue_name
