"""Scopes: what a payload belongs to. A signature covers the scope, so that a payload is refused
anywhere else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

from .signed_metadata import covered, node_in

#: The kind of the payload, and the columns that it depends on.
Scope: TypeAlias = tuple[str | int | None, ...]


def call_scope(job: Any, concurrency_key: str | None) -> Scope:
    """Return the scope of a job's arguments. The id of the job is not known when they are signed.
    What is covered of its metadata, such as delivery and callbacks, is part of it.

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
        *_if_any(covered(job.metadata)),
    )


def result_scope(job: Any, job_id: int) -> Scope:
    """Return the scope of a job's return value, with the place of the job in its graph."""
    return (*_of_one_job("result", job, job_id), *_if_any(node_in(job.metadata)))


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
        *_limits_of(row),
    )


def _limits_of(row: Any) -> Scope:
    """Return what limits the runs of a recurring task; nothing if nothing does, so that rows which
    were signed before there were limits stay valid."""
    limits = (_in_utc(row.starts_at), _in_utc(row.ends_at), row.repeats, row.overlap)
    return () if limits == (None, None, None, "allow") else limits


def _in_utc(stored: datetime | None) -> str | None:
    """Return a stored instant as text; it is naive in UTC without ``USE_TZ``."""
    if stored is None:
        return None
    aware = stored.replace(tzinfo=UTC) if stored.tzinfo is None else stored
    return aware.astimezone(UTC).isoformat()


def _if_any(text: str | None) -> Scope:
    """Return what most jobs do not have, so that they are signed as they were before."""
    return () if text is None else (text,)


def _of_one_job(kind: str, job: Any, job_id: int) -> Scope:
    return kind, job_id, job.task_path, job.backend_name, job.queue_name
