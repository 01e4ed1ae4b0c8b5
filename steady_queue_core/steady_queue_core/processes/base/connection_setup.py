"""The connections of queue processes: set up by the dialect, and never carried over a fork."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ...dialects import dialect_for
from .connections import OUR_THREADS, close_own_connections


class _Place(threading.local):
    """Whether the thread looks after a queue, and so has other things to do than to wait."""

    looks_after_queue = False


_place = _Place()


@contextmanager
def looking_after_queue() -> Iterator[None]:
    """Have the calling thread wait for no lock longer than it must; close its connections in the
    end."""
    _place.looks_after_queue = True
    try:
        yield
    finally:
        _place.looks_after_queue = False
        close_own_connections()


@contextmanager
def preparing_connections(
    using: str, say: Callable[[list[str]], object], *, everywhere: bool = True
) -> Iterator[None]:
    """Have every connection to the queue's database set up by its dialect; also in the processes
    that are forked meanwhile. Not ``everywhere``: those of the queue's own threads alone, in a
    process that has others.

    ``say`` gets the sentences on what was changed. The main thread of a process has other things to
    look after than a lock; tasks run in the other threads.
    """

    def prepare(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
        impatient = _place.looks_after_queue or (
            everywhere and threading.current_thread() is threading.main_thread()
        )
        ours = everywhere or threading.current_thread().name.startswith(OUR_THREADS)
        if connection.alias == using and (ours or impatient):
            try:
                said = dialect_for(using).prepare(connection, impatient=impatient)
            except BaseException:
                connection.close()  # Who asks next would use it as it is.
                raise
            say(said)

    uid = f"steady_queue_prepare_{using}"
    connection_created.connect(prepare, weak=False, dispatch_uid=uid)
    try:
        connections[using].close()  # Another one, when it is needed, is prepared.
        yield
    finally:
        connection_created.disconnect(dispatch_uid=uid)
        if everywhere:
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
