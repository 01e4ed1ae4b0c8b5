"""One queue over several databases: ``ShardedBackend`` for ``TASKS``. See ``docs/sharding.md``."""

from __future__ import annotations

from .backend import ShardedBackend

__all__ = ["ShardedBackend"]
