"""The shards of a backend in ``TASKS``."""

from __future__ import annotations

from typing import Any

from ..backend import SteadyQueueBackend
from ..compat import InvalidTaskBackend, task_backends
from .backend import ShardedBackend


def shards_of(alias: str) -> list[SteadyQueueBackend]:
    """Return all shards of a backend that store jobs; none if it is not a sharded one.

    Raises ``ConfigurationError`` if it is sharded, and its shards can be none.
    """
    try:
        backend: Any = task_backends[alias]
    except (InvalidTaskBackend, KeyError):
        return []
    members = backend.members if isinstance(backend, ShardedBackend) else []
    return [shard for shard in members if shard.stores_jobs]
