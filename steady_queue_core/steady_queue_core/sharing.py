"""Introduces the project's own connections to the dialect of the queue's database."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


def share_connections() -> None:
    """From now on, have each new connection to a queue's database set up by its dialect."""
    connection_created.connect(_share, dispatch_uid="steady_queue_share")


def _share(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    from .dialects import dialect_for

    try:
        if connection.alias in queue_databases():
            dialect_for(connection.alias).share(connection)
    except ImproperlyConfigured:
        return  # The system checks report it; the project's own queries must not fail for it.


def queue_databases() -> set[str]:
    """Return the aliases of the databases that hold a queue.

    Raises ``ImproperlyConfigured`` where ``TASKS`` is wrong.
    """
    from .backend import own_backends

    return {backend.database for backend in own_backends().values()}
