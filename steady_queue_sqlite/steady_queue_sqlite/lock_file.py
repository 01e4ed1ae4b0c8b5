"""The lock file next to a database: writers wait there for their turn."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from threading import local
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from django.db.backends.base.base import BaseDatabaseWrapper

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock must suffice.
    fcntl = None  # type: ignore[assignment]  # Asked before use.

#: Seconds to wait for the lock file before going on without it: a process may be frozen while it
#: holds the file but not the database.
TIMEOUT = 1.0
#: The same after a timeout, until the lock has been acquired again.
TIMEOUT_WHEN_STUCK = 0.005
#: Seconds between two tries; the interval grows.
MIN_INTERVAL, MAX_INTERVAL = 0.0002, 0.002


def database_path(connection: BaseDatabaseWrapper) -> str | None:
    """Return the path of the database file, or ``None`` for a database in memory.

    Links are resolved, as SQLite does: the WAL is next to the file itself, and all processes that
    share the file must find the same lock file.
    """
    return _path_of(str(connection.settings_dict["NAME"]))


@lru_cache(maxsize=64)
def _path_of(name: str) -> str | None:
    if not name or ":memory:" in name or "mode=memory" in name or "vfs=memdb" in name:
        return None
    if name.startswith("file:"):
        name = unquote(urlsplit(name).path)
    return os.path.realpath(name)


@contextmanager
def lock_file(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Hold the database's lock file during a transaction, if there is one and it can be locked."""
    wrapper: Any = connection
    own = _own_file(database_path(connection))
    if own is None or own.held:
        yield
        return
    try:
        # In here: a task that is interrupted in between must not keep the lock.
        own.acquire(_timeout(wrapper))
        yield
    finally:
        own.release()


def _timeout(wrapper: Any) -> float:
    # Control threads wait here no longer than for the database.
    return min(TIMEOUT, getattr(wrapper, "steady_queue_lock_timeout", TIMEOUT))


class LockFile:
    """The open lock file of a thread. It is closed when the thread ends, and in a forked child."""

    def __init__(self, path: str) -> None:
        # Read-only is enough to lock it: the file may belong to another user of the database. A
        # link or FIFO that someone else has planted must not be followed, nor block the open.
        flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._descriptor = os.open(f"{path}-queue.lock", flags, 0o600)
        _match_permissions(self._descriptor, os.stat(path))
        self._stuck = False
        self.held = False
        _opened.add(self)

    def __del__(self) -> None:
        self.close()

    def acquire(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for the lock; return whether it was acquired."""
        interval = MIN_INTERVAL
        deadline = time.monotonic() + (TIMEOUT_WHEN_STUCK if self._stuck else timeout)
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    self._stuck = True
                    return False
                time.sleep(interval)
                interval = min(interval * 1.5, MAX_INTERVAL)
            except OSError:
                return False  # The file system has no locks.
            else:
                self._stuck, self.held = False, True
                return True

    def release(self) -> None:
        """Release the lock, if it was acquired."""
        self.held = False
        with suppress(OSError):  # The file system has no locks.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self, close: Callable[[int], None] = os.close) -> None:
        """Close the file, if it is open."""
        descriptor, self._descriptor = getattr(self, "_descriptor", -1), -1
        if descriptor >= 0:
            close(descriptor)


def _match_permissions(descriptor: int, database: os.stat_result) -> None:
    """Give the lock file the group and permissions that the database has for writing."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise OSError("the lock file is not a regular file of its own")
    if found.st_uid != os.geteuid():
        return
    # As SQLite does for its own files: programs of the same user or group must be able to lock it.
    owner = database.st_uid if found.st_uid == 0 else -1
    with suppress(PermissionError):
        os.fchown(descriptor, owner, database.st_gid)
    writers = database.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    os.fchmod(descriptor, 0o600 | writers | writers << 1)


_thread_files = local()
#: The lock files that are open in this process.
_opened: WeakSet[LockFile] = WeakSet()


def _own_file(path: str | None) -> LockFile | None:
    """Return this thread's lock file of the database at ``path``."""
    if fcntl is None or path is None:
        return None
    files: dict[str, LockFile] = _thread_files.__dict__.setdefault("files", {})
    if path not in files:
        try:
            files[path] = LockFile(path)
        except OSError:
            return None
    return files[path]


def forget_lock_file(path: str) -> None:
    """Have this thread open the lock file of the database at ``path`` anew."""
    files: dict[str, LockFile] = _thread_files.__dict__.get("files", {})
    if path in files and not files[path].held:
        del files[path]


def _close_in_child() -> None:
    """Close inherited files: a forked child shares its parent's descriptors and their locks."""
    global _thread_files
    _thread_files = local()
    for opened in list(_opened):
        opened.close()
    _opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
