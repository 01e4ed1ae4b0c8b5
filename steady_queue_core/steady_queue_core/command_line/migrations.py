"""Migrations that databases of the queue still lack."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, connections

from ..configured_backends import queue_databases
from ..models.readiness import pending_migrations


def pending_anywhere() -> list[str]:
    """Return the migrations that any database of the queue lacks, as far as they answer."""
    found: dict[str, None] = {}
    for using in queue_databases():
        try:
            found.update(dict.fromkeys(pending_migrations(connections[using])))
        except (DatabaseError, InterfaceError):
            continue
    return list(found)
