"""The lock file beside a database: where writers wait for their turn."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import local
from typing import Any
from weakref import WeakSet

from django.db.backends.base.base import BaseDatabaseWrapper

from .database_file import database_path

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock has to do.
    fcntl = None  # type: ignore[assignment]

#: Seconds to look at the lock file before going on without it: its holder may be frozen while it
#: does not hold the database.
PATIENCE = 1.0
#: The same while nobody has got the lock since somebody waited in vain.
DISTRUST = 0.005
#: Waiting steps, in seconds.
SHORTEST_STEP, LONGEST_STEP = 0.0002, 0.002


@contextmanager
def lock_file(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Hold the database's lock file, if there can be one, for the time of a transaction."""
    wrapper: Any = connection
    own = _own_file(database_path(connection))
    if own is None or own.held or not own.acquire(_patience(wrapper)):
        yield
        return
    try:
        yield
    finally:
        own.release()


def _patience(wrapper: Any) -> float:
    # A thread that is to wait for the database only shortly does not wait here much longer.
    return min(PATIENCE, getattr(wrapper, "steady_queue_patience", PATIENCE))


class LockFile:
    """A thread's open lock file; it is closed with the thread, and in a forked child."""

    def __init__(self, path: str) -> None:
        # To lock it is not to write it: another user of the database may have made the file. What
        # a stranger has put there must not lead elsewhere, or have us wait.
        flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._descriptor = os.open(f"{path}-queue.lock", flags, 0o600)
        _share(self._descriptor, os.stat(path))
        self._distrusted = False
        self.held = False
        _opened.add(self)

    def __del__(self) -> None:
        self.close()

    def acquire(self, patience: float) -> bool:
        """Wait for the lock, for at most ``patience`` seconds; say whether it was got."""
        step = SHORTEST_STEP
        deadline = time.monotonic() + (DISTRUST if self._distrusted else patience)
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    self._distrusted = True
                    return False
                time.sleep(step)
                step = min(step * 1.5, LONGEST_STEP)
            except OSError:
                return False  # A file system without locks.
            else:
                self._distrusted, self.held = False, True
                return True

    def release(self) -> None:
        """Give the lock back."""
        self.held = False
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self, close: Callable[[int], None] = os.close) -> None:
        """Close the file, if it is open."""
        descriptor, self._descriptor = getattr(self, "_descriptor", -1), -1
        if descriptor >= 0:
            close(descriptor)


def _share(descriptor: int, database: os.stat_result) -> None:
    """Let those lock the file who may write the database, and no others."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise OSError("the lock file is something else")
    if found.st_uid != os.geteuid():
        return
    # As SQLite does with its own files, for the programs that run as their user, or in its group.
    owner = database.st_uid if found.st_uid == 0 else -1
    with suppress(PermissionError):
        os.fchown(descriptor, owner, database.st_gid)
    writers = database.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    os.fchmod(descriptor, 0o600 | writers | writers << 1)


_of_this_thread = local()
#: The lock files that the threads of this process have open.
_opened: WeakSet[LockFile] = WeakSet()


def _own_file(path: str | None) -> LockFile | None:
    """Return this thread's lock file of the database at ``path``."""
    if fcntl is None or path is None:
        return None
    files: dict[str, LockFile] = _of_this_thread.__dict__.setdefault("files", {})
    if path not in files:
        try:
            files[path] = LockFile(path)
        except OSError:
            return None
    return files[path]


def _close_in_child() -> None:
    """A forked child shares its parent's descriptors, and with them the locks."""
    global _of_this_thread
    _of_this_thread = local()
    for opened in list(_opened):
        opened.close()
    _opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
