"""The connections of queue processes: set up by the dialect, and never carried over a fork."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ..dialects import dialect_for


@contextmanager
def preparing_connections(using: str, say: Callable[[list[str]], object]) -> Iterator[None]:
    """Have every connection to the queue's database set up by its dialect; also in the processes
    that are forked meanwhile.

    ``say`` gets the sentences on what was changed. The main thread has other things to look after
    than a lock; tasks run in the other threads.
    """

    def prepare(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
        if connection.alias == using:
            impatient = threading.current_thread() is threading.main_thread()
            try:
                said = dialect_for(using).prepare(connection, impatient=impatient)
            except BaseException:
                connection.close()  # Who asks next would use it as it is.
                raise
            say(said)

    connection_created.connect(prepare, weak=False, dispatch_uid="steady_queue_prepare")
    try:
        if connections[using].connection is not None:
            prepare(connections[using])
        yield
    finally:
        connection_created.disconnect(dispatch_uid="steady_queue_prepare")
        close_connections()


def close_connections() -> None:
    """Close every connection of the calling thread, and the pools of the process."""
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool is not None:
            with suppress(Exception):
                close_pool()
