"""The backends that batches, chains, groups and workflows are stored by."""

from __future__ import annotations

from typing import Any

from ..arguments.signature import require_fit
from ..compat import InvalidTask, task_backends
from .graph import Graph


def storing_backend(alias: str) -> Any:
    """Return the backend of a batch that exists.

    Raises ``InvalidTask`` for one that has no batches, or has them on several shards.
    """
    backend: Any = task_backends[alias]
    if hasattr(backend, "shard_for_batch"):
        raise InvalidTask(
            f"TASKS[{alias!r}] has several shards, and the id of a batch says nothing of its own. "
            f"Name the shard: backend={' or '.join(repr(each.alias) for each in backend.members)}."
        )
    if not _stores_jobs(backend):
        raise InvalidTask(
            f"TASKS[{alias!r}] does not store its jobs in a database, and so has no batches."
        )
    return backend


def backend_of_new(alias: str, key: object) -> Any:
    """Return the backend that stores a new batch, or the shard of it that ``key`` belongs to.
    Raises ``InvalidTask``."""
    backend: Any = task_backends[alias]
    if hasattr(backend, "shard_for_batch"):
        alias = backend.shard_for_batch(key).alias
    return storing_backend(alias)


def backend_of_graph(graph: Graph) -> Any:
    """Return the backend of the first call of a graph, or the shard of that call. Raises
    ``InvalidTask`` if that stores its jobs elsewhere than in a database."""
    first = next(member.call for _, member in graph.walk() if member.call is not None)
    task = first.task
    backend: Any = task.get_backend()
    if hasattr(backend, "shard_of_call"):
        require_fit(task, first.args, first.kwargs)
        backend = backend.shard_of_call(task, first.args, first.kwargs)
    if not _stores_jobs(backend):
        raise InvalidTask(
            f"TASKS[{task.backend!r}] does not store its jobs in a database, and so has no chains, "
            "groups and workflows."
        )
    return backend


def _stores_jobs(backend: object) -> bool:
    return getattr(backend, "stores_jobs", False)
