"""Database connections of the threads that run tasks: kept from task to task, in good order."""

from __future__ import annotations

import logging
import threading
import time
from asyncio import CancelledError
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ..logging import about

logger = logging.getLogger("steady_queue.worker")

#: How the names of a worker's own threads begin.
OUR_THREADS = "steady-queue-"

#: Whether another thread, as sync_to_async() starts it, has connected to a database.
_served_coroutines = threading.Event()


def tidy_connections() -> None:
    """Leave no trace of a task on the calling thread's connections.

    A connection is kept, unless the task left it in a transaction or broken, it is past its
    ``CONN_MAX_AGE``, or it belongs to a pool. Django asks it for a sign of life before the next
    task's first query, if that is set or if it would be a new connection in a request.
    """
    for connection in connections.all(initialized_only=True):
        connection.queries_log.clear()  # With DEBUG, as Django does for each request.
        try:
            if connection.in_atomic_block or connection.closed_in_transaction:
                _drop(connection)
            elif connection.connection is None:
                continue
            elif _is_spent(connection):
                connection.close()
            else:
                _plan_health_check(connection)
        except Exception:
            logger.warning(
                "A connection to %r broke",
                connection.alias,
                exc_info=True,
                extra=about("worker.connection_broken", database=connection.alias),
            )
            _drop(connection)


def close_own_connections() -> None:
    """Close the connections of the calling thread, which is about to end."""
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()


async def atidy_connections() -> None:
    """Do so on the thread that serves the queries of coroutines, if there have been any."""
    if _served_coroutines.is_set():
        with suppress(CancelledError):  # The task is over, whoever wanted it cancelled.
            await sync_to_async(tidy_connections)()


def watch_connections() -> None:
    """Have ``atidy_connections`` know of the first query of a coroutine."""
    connection_created.connect(_note_thread, dispatch_uid="steady_queue_note_thread")


def _note_thread(**kwargs: object) -> None:
    thread = threading.current_thread()
    if thread is not threading.main_thread() and not thread.name.startswith(OUR_THREADS):
        _served_coroutines.set()


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


def _plan_health_check(connection: Any) -> None:
    settings = connection.settings_dict
    fresh_each_time = settings["CONN_MAX_AGE"] == 0
    connection.health_check_enabled = settings["CONN_HEALTH_CHECKS"] or fresh_each_time
    connection.health_check_done = False


def _drop(connection: BaseDatabaseWrapper) -> None:
    # The wrapper believes to be in a block that nobody will leave: forget it altogether.
    with suppress(Exception):
        if connection.connection is not None:
            connection.connection.close()
    del connections[connection.alias]
