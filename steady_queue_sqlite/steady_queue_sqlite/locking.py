"""One writer at a time, in fair order.

SQLite's own lock makes waiters sleep ever longer and serves whoever happens to wake: under load
one process gets everything and another waits for seconds. The queue's own writers therefore pass
through a lock file first, where they look often and for a bounded time, and begin their
transactions in IMMEDIATE mode, because a transaction that becomes a writer halfway fails at once
when somebody else has written meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any
from weakref import WeakSet

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import Atomic

from steady_queue_core.dialects import tables

from .wal_watch import database_path

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock has to do.
    fcntl = None  # type: ignore[assignment]

#: How long to look at the lock file before going on without it: its holder may be frozen while
#: it does not hold the database.
LOCK_FILE_PATIENCE = 1.0
#: How long to try to begin a transaction while others hold the database, in seconds.
BEGIN_PATIENCE = 30.0
#: The same for a thread that tries again by itself.
IMPATIENCE = 2.0
#: Waiting steps at the lock file, in seconds.
SHORTEST_STEP, LONGEST_STEP = 0.0002, 0.002

BECOME_WRITER = f"DELETE FROM {tables.PAUSES} WHERE 0"

_open_files = local()


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Join the caller's transaction, or be an immediate one of our own."""
    if connection.in_atomic_block:
        with connection.cursor() as cursor:
            # A caller's deferred transaction becomes the writer now, before our first read:
            # what we read could else be out of date when we write.
            cursor.execute(BECOME_WRITER)
        yield
        return
    atomic = Atomic(connection.alias, savepoint=False, durable=False)
    with lock_file(connection):
        _begin(connection, atomic)
        try:
            yield
        except BaseException as error:
            atomic.__exit__(type(error), error, error.__traceback__)
            raise
        atomic.__exit__(None, None, None)


def set_patience(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Wait so long for other writers, in single statements and at the begin of transactions."""
    wrapper: Any = connection
    wrapper.steady_queue_patience = seconds
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


def _begin(connection: BaseDatabaseWrapper, atomic: Atomic) -> None:
    connection.ensure_connection()  # Only then is the project's own mode known.
    wrapper: Any = connection
    patience = getattr(wrapper, "steady_queue_patience", BEGIN_PATIENCE)
    deadline = time.monotonic() + patience
    mode = wrapper.transaction_mode
    wrapper.transaction_mode = "IMMEDIATE"
    try:
        while True:
            try:
                atomic.__enter__()
                return
            except OperationalError as error:
                if not is_contention(error) or time.monotonic() > deadline:
                    raise
    finally:
        wrapper.transaction_mode = mode


@contextmanager
def lock_file(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Hold the database's lock file, if there can be one, for the time of a transaction."""
    descriptor = _descriptor(database_path(connection))
    if descriptor is None or descriptor in _held():
        yield
        return
    if not _acquire(descriptor):
        yield
        return
    _held().add(descriptor)
    try:
        yield
    finally:
        _held().discard(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _held() -> set[int]:
    """Return the descriptors of the lock files that this thread holds."""
    held: set[int] = _open_files.__dict__.setdefault("held", set())
    return held


def _acquire(descriptor: int) -> bool:
    step = SHORTEST_STEP
    deadline = time.monotonic() + LOCK_FILE_PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(step)
            step = min(step * 1.5, LONGEST_STEP)
        except OSError:
            return False  # A file system without locks.
        else:
            return True


def _descriptor(path: str | None) -> int | None:
    """Return this thread's descriptor of the lock file beside ``path``."""
    if fcntl is None or path is None:
        return None
    opened: dict[str, _LockFile] = _open_files.__dict__.setdefault("opened", {})
    if path not in opened:
        try:
            opened[path] = _LockFile(path)
        except OSError:
            return None
    return opened[path].descriptor


class _LockFile:
    """An open lock file: closed with the thread that opened it."""

    def __init__(self, path: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self.descriptor = os.open(f"{path}-queue.lock", flags, 0o666)
        _lock_files.add(self)

    def __del__(self) -> None:
        self.close()

    def close(self, close: Callable[[int], None] = os.close) -> None:
        descriptor, self.descriptor = getattr(self, "descriptor", -1), -1
        if descriptor >= 0:
            close(descriptor)


#: The lock files that the threads of this process have open.
_lock_files: WeakSet[_LockFile] = WeakSet()


def _forget_descriptors() -> None:
    """In a forked child: it shares its parent's descriptors, and with them the locks."""
    global _open_files
    _open_files = local()
    for opened in list(_lock_files):
        opened.close()
    _lock_files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_descriptors)


def is_contention(error: BaseException) -> bool:
    """Recognise SQLITE_BUSY and SQLITE_LOCKED, whatever the text around them."""
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    if code is None:
        return "database is locked" in str(error) or "table is locked" in str(error)
    return (code & 0xFF) in (5, 6)
