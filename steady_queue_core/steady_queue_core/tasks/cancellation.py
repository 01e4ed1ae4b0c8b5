"""The attempts in this process that are to end because their jobs were cancelled."""

from __future__ import annotations

from ..errors import TaskCancelled

#: Job id and token of each. Filled by the main thread of a worker; tasks look into it.
requested: set[tuple[int, int]] = set()


def is_requested(job_id: int, token: int) -> bool:
    """Whether this attempt is to end."""
    return bool(requested) and (job_id, token) in requested


def as_cancelled(error: BaseException) -> TaskCancelled:
    """Return what an attempt that was to end has ended with, whatever it has raised."""
    if isinstance(error, TaskCancelled):
        return error
    cancelled = TaskCancelled()
    cancelled.__cause__ = error
    return cancelled
