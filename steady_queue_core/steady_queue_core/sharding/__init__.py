"""One queue over several databases: ``ShardedBackend`` for ``TASKS``. See ``docs/sharding.md``.

What belongs to a job or batch already follows ``tasks/placement.py``.
"""

from __future__ import annotations

from .backend import ShardedBackend

__all__ = ["ShardedBackend"]
