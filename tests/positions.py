"""How far claims on a connection have read."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper


def forget_positions(connection: BaseDatabaseWrapper) -> None:
    """Let the next claim look at all jobs: where other tests have left many dead rows, a dialect
    may pass over jobs that have become ready again until it looks at all of them anyway."""
    for name in ("steady_queue_claimers", "steady_queue_bookmarks"):
        connection.__dict__.pop(name, None)
