"""Which shard stores what belongs to a job or batch: the shard of that."""

from __future__ import annotations

from typing import Any

from ..compat import Task, task_backends
from .copies import rebuilt


def beside(task: Task, backend: Any) -> Task:
    """Return ``task`` as it is stored together with the jobs of ``backend``.

    A task of a sharded backend gets the shard of that database, whatever its key; if there is
    none, it stays as it is, and so does any other task.
    """
    alias = alias_beside(task.backend, backend)
    placed: Task = task if alias == task.backend else rebuilt(task, backend=alias)
    return placed


def alias_beside(alias: str, backend: Any) -> str:
    """Return the backend that stores tasks of the backend ``alias`` beside those of ``backend``."""
    find = getattr(task_backends[alias], "shard_beside", None)
    found: str | None = None if find is None else find(backend)
    return alias if found is None else found
