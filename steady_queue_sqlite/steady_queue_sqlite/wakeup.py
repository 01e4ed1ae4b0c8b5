"""Wake-ups from the kernel's file events: every commit writes to the WAL file.

Linux only: inotify, through the C library. Elsewhere there is no listener, and workers poll.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper

from .lock_file import database_path

IN_MODIFY, IN_CREATE, IN_MOVED_TO = 0x2, 0x100, 0x80
IN_NONBLOCK, IN_CLOEXEC = getattr(os, "O_NONBLOCK", 0), getattr(os, "O_CLOEXEC", 0)
EVENT_HEADER = struct.Struct("iIII")


def wakeup(connection: BaseDatabaseWrapper) -> WalListener | None:
    """Return a listener for commits to the database of ``connection``, where there can be one."""
    path = database_path(connection)
    return WalListener.start(path) if path and can_listen(connection) else None


def can_listen(connection: BaseDatabaseWrapper) -> bool:
    """Return whether commits to this database can be noticed."""
    return database_path(connection) is not None and _libc() is not None


@cache
def _libc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "inotify_init1") else None


class WalListener:
    """Becomes readable when the WAL file of a database is written."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._directory, name = os.path.split(path)
        self._wal = f"{path}-wal"
        self._wal_name = os.fsencode(f"{name}-wal")
        # The WAL file comes and goes with the first and last connection; its directory stays.
        self.in_order = self._add(self._directory, IN_CREATE | IN_MOVED_TO)
        self._watch_file()

    @classmethod
    def start(cls, path: str) -> WalListener | None:
        """Listen to the WAL of the database at ``path``; ``None`` if the kernel refuses."""
        library = _libc()
        if library is None:
            return None
        descriptor = library.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)
        return cls(descriptor, path) if descriptor >= 0 else None

    def fileno(self) -> int:
        return self._descriptor

    def clear(self) -> None:
        while True:
            try:
                events = os.read(self._descriptor, 65536)
            except BlockingIOError:
                return
            if self._names_wal(events):
                self._watch_file()

    def close(self) -> None:
        os.close(self._descriptor)

    def _watch_file(self) -> None:
        if os.path.exists(self._wal):
            self.in_order &= self._add(self._wal, IN_MODIFY)

    def _add(self, path: str, mask: int) -> bool:
        library = _libc()
        assert library is not None
        watch: int = library.inotify_add_watch(self._descriptor, os.fsencode(path), mask)
        return watch >= 0

    def _names_wal(self, events: bytes) -> bool:
        position = 0
        while position < len(events):
            _, _, _, length = EVENT_HEADER.unpack_from(events, position)
            position += EVENT_HEADER.size
            if events[position : position + length].rstrip(b"\0") == self._wal_name:
                return True
            position += length
        return False
