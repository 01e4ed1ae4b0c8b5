"""Migrations of the queue that a database still lacks."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, connections
from django.db.migrations.executor import MigrationExecutor

from ..configured_backends import queue_databases

APP = "steady_queue"


def pending_in(using: str) -> list[str]:
    """Return the names of the queue's migrations that were not applied to a database, in order."""
    executor = MigrationExecutor(connections[using])
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == APP]
    return [migration.name for migration, _ in executor.migration_plan(targets)
            if migration.app_label == APP]  # fmt: skip


def pending_migrations() -> list[str]:
    """Return what any database of the queue lacks, as far as they answer."""
    found: dict[str, None] = {}
    for using in queue_databases():
        try:
            found.update(dict.fromkeys(pending_in(using)))
        except (DatabaseError, InterfaceError):
            continue
    return list(found)
