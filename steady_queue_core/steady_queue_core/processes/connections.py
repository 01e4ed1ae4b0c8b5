"""Database connections of the threads that run tasks: kept from task to task, in good order."""

from __future__ import annotations

import time
from contextlib import suppress

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


def tidy_connections() -> None:
    """Leave no trace of a task on the calling thread's connections.

    A connection is kept, unless the task left it in a transaction or broken, it is past its
    ``CONN_MAX_AGE``, or it belongs to a pool.
    """
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block or connection.closed_in_transaction:
            _drop(connection)
        elif connection.connection is None:
            continue
        elif _is_spent(connection):
            connection.close()


def _is_spent(connection: BaseDatabaseWrapper) -> bool:
    settings = connection.settings_dict
    if settings["OPTIONS"].get("pool"):
        return True
    if connection.get_autocommit() != settings["AUTOCOMMIT"]:
        return True
    if connection.errors_occurred:
        if not connection.is_usable():
            return True
        connection.errors_occurred = False
    # Django's default age of 0 means one request; a worker has none.
    close_at = connection.close_at if settings["CONN_MAX_AGE"] else None
    return close_at is not None and time.monotonic() >= close_at


def _drop(connection: BaseDatabaseWrapper) -> None:
    # The wrapper believes to be in a block that nobody will leave: forget it altogether.
    with suppress(Exception):
        if connection.connection is not None:
            connection.connection.close()
    del connections[connection.alias]
