"""Sets up the connections of queue processes through the dialect, and closes them before a fork."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ...dialects import dialect_for
from .connections import close_own_connections, is_shared
from .thread_roles import THREAD_PREFIX


class _ThreadRole(threading.local):
    """True in control threads, which must not block on locks."""

    is_control_thread = False


_role = _ThreadRole()
#: The databases whose connections are prepared.
_prepared: set[str] = set()


@contextmanager
def as_control_thread() -> Iterator[None]:
    """Run the block as a control thread, whose connections wait only briefly for locks; close
    them afterwards."""
    _role.is_control_thread = True
    try:
        yield
    finally:
        _role.is_control_thread = False
        close_own_connections()


@contextmanager
def preparing_connections(
    using: str, report: Callable[[list[str]], object], *, all_threads: bool = True
) -> Iterator[None]:
    """Prepare, through the dialect, each connection to the queue's database that is opened inside
    the block, or in a process that is forked inside it. With ``all_threads=False``, only those of
    the queue's own threads, in a process that has others.

    ``report`` receives the sentences about changed settings. The main thread of a process is a
    control thread as well: tasks run in the others.
    """

    def prepare(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
        short_lock_wait = _role.is_control_thread or (
            all_threads and threading.current_thread() is threading.main_thread()
        )
        ours = all_threads or threading.current_thread().name.startswith(THREAD_PREFIX)
        if connection.alias == using and (ours or short_lock_wait):
            try:
                if short_lock_wait and not connection.get_autocommit():
                    # The project's AUTOCOMMIT = False is for its tasks, which commit themselves.
                    connection.set_autocommit(True)
                changes = dialect_for(using).prepare(connection, impatient=short_lock_wait)
            except BaseException:
                connection.close()  # Otherwise the next query would use it unprepared.
                raise
            report(changes)

    uid = _uid(using)
    connection_created.connect(prepare, weak=False, dispatch_uid=uid)
    _prepared.add(using)
    if not all_threads:
        is_shared.set()
    try:
        connections[using].close()  # The next one, when needed, is prepared.
        yield
    finally:
        connection_created.disconnect(dispatch_uid=uid)
        _prepared.discard(using)
        if all_threads:
            close_connections()


def prepare_only(using: str) -> None:
    """Prepare no connections any more but those to ``using``: the tasks of this process may use
    other queues' databases, as anybody may."""
    for other in [each for each in _prepared if each != using]:
        connection_created.disconnect(dispatch_uid=_uid(other))


def _uid(using: str) -> str:
    return f"steady_queue_prepare_{using}"


def close_connections() -> None:
    """Close all connections of the calling thread, and the pools of the process."""
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool is not None:
            with suppress(Exception):
                close_pool()
