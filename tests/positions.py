"""What claims on a connection remember."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper


def forget_positions(connection: BaseDatabaseWrapper) -> None:
    """Let the next claim look at all jobs: where other tests have left many dead rows, a dialect
    may pass over jobs that have become ready again until it looks at all of them anyway. And where
    they have kept jobs locked, it goes around such jobs for a while."""
    for name in ("claimers", "bookmarks", "locked_jobs"):
        connection.__dict__.pop(f"steady_queue_{name}", None)
