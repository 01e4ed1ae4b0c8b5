"""The supervisor's pidfile. The lock on it is decisive, never the number in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import SteadyQueueError
from ...logging import about, get_logger

try:
    import fcntl
except ImportError:  # Not a POSIX system.
    fcntl = None  # type: ignore[assignment]  # Asked before use.


logger = get_logger("steady_queue.supervisor")


class PidfileError(SteadyQueueError):
    """The pidfile is held by another supervisor, or cannot be written."""


class Pidfile:
    """Held while a supervisor runs; a second one with the same path is refused."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None

    def __enter__(self) -> Pidfile:
        if self._descriptor is None:
            self.acquire()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    @property
    def passed(self) -> tuple[str, int] | None:
        """The path and the descriptor that holds the lock, while it is held."""
        return None if self._descriptor is None else (str(self.path), self._descriptor)

    def adopt(self, descriptor: int) -> None:
        """Hold the lock that the former supervisor in this process has acquired."""
        self._descriptor = descriptor
        self._release_in_children()

    def acquire(self) -> None:
        """Lock the file and write our pid. Raises ``PidfileError``."""
        if fcntl is None:
            raise PidfileError(
                f"The pidfile {self.path} cannot be used: this system has no locks on files that "
                "end with their process. Leave supervisor_pidfile out."
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while self._descriptor is None:
                self._try()
        except OSError as error:
            raise PidfileError(
                f"The pidfile {self.path} cannot be used: {error.strerror}. Choose a path in a "
                "folder that this user may write to, and that is not a link."
            ) from error
        self._release_in_children()

    def _release_in_children(self) -> None:
        # The lock belongs to the open file, which children share: they must not keep it locked.
        os.register_at_fork(after_in_child=self._close)

    def _try(self) -> None:
        # O_NONBLOCK: opening a named pipe would wait for its other end.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            self._require_own(os.fstat(descriptor))
            # Other users who can open the file could lock it.
            os.fchmod(descriptor, 0o600)
            self._lock(descriptor)
            # The last holder may have removed the file between our open and our lock.
            if _is_at(descriptor, self.path):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
                self._descriptor = descriptor
        finally:
            if self._descriptor is None:
                os.close(descriptor)

    def _require_own(self, found: os.stat_result) -> None:
        """Refuse a file that another user may lock, or that is another file under this name."""
        reason = None
        if not stat.S_ISREG(found.st_mode):
            reason = "it is not a regular file"
        elif found.st_uid != os.geteuid():
            reason = f"it belongs to the user with the id {found.st_uid}"
        elif found.st_nlink > 1:
            reason = "it is a file that has another name as well (a hard link)"
        if reason:
            raise PidfileError(
                f"The pidfile {self.path} cannot be used: {reason}. Remove it, or choose a path in "
                "a folder that only this user may write to."
            )

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise PidfileError(
                f"A supervisor is already running (pid {pid}): it holds {self.path}. Stop it "
                "first, or give this one a pidfile of its own."
            ) from None

    def release(self) -> None:
        """Delete the file and release the lock."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            self.path.unlink()
        self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def succeeding(former: Sequence[Any] | None, wanted: Path | None) -> Pidfile | None:
    """Return the ``wanted`` pidfile for new code that takes over from a supervisor in this process.

    ``former``: path and descriptor of the one that it held, which is released if it is another one.
    A new one that cannot be had is logged: children are at work already.
    """
    if former is not None:
        path, descriptor = former
        pidfile = Pidfile(path)
        pidfile.adopt(descriptor)
        if wanted is not None and str(wanted) == path:
            return pidfile
        pidfile.release()
    if wanted is None:
        return None
    pidfile = Pidfile(wanted)
    try:
        pidfile.acquire()
    except PidfileError as error:
        logger.error("%s", error, extra=about("supervisor.without_pidfile"))
        return None
    return pidfile


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
