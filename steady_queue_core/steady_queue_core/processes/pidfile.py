"""The supervisor's pidfile. The lock on it decides, never the number in it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..errors import SteadyQueueError

try:
    import fcntl
except ImportError:  # Not a POSIX system.
    fcntl = None  # type: ignore[assignment]


class PidfileError(SteadyQueueError):
    """The pidfile is held by another supervisor, or cannot be written."""


class Pidfile:
    """Held while a supervisor runs; a second one with the same path is refused."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None

    def __enter__(self) -> Pidfile:
        self.acquire()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Lock the file and write our pid. Raises ``PidfileError``."""
        if fcntl is None:
            raise PidfileError(
                f"The pidfile {self.path} cannot be used: this system has no locks on files that "
                "end with their process. Leave supervisor_pidfile out."
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = os.open(self.path, flags, 0o644)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The last holder may have removed the file between our open and our lock.
                if _is_at(descriptor, self.path):
                    break
                os.close(descriptor)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise PidfileError(
                f"A supervisor is already running (pid {pid}): it holds {self.path}. Stop it "
                "first, or give this one a pidfile of its own."
            ) from None
        except OSError as error:
            raise PidfileError(
                f"The pidfile {self.path} cannot be used: {error.strerror}. Choose a path in a "
                "folder that this user may write to, and that is no link."
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        # The lock belongs to the open file, which children share: they must not hold it on.
        os.register_at_fork(after_in_child=self._close)

    def release(self) -> None:
        """Remove the file and give up the lock."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            self.path.unlink()
        self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
