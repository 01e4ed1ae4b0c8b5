"""A file whose time of change is the supervisor's last sign of life."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..base import system

logger = get_logger("steady_queue.supervisor")


class HeartbeatFile:
    """Touched in each round of the supervisor, and removed when it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._has_failed = False

    def touch(self) -> None:
        """Set the time of the file to now; log once that this is impossible."""
        try:
            self._touch()
        except OSError:
            if not self._has_failed:
                self._has_failed = True
                log_internal_error(
                    logger,
                    "The heartbeat file %s cannot be written",
                    self.path,
                    extra=about("supervisor.heartbeat_file_failed"),
                )
        else:
            self._has_failed = False

    def _touch(self) -> None:
        # O_NONBLOCK: opening a named pipe would wait for its other end.
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        descriptor = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
        try:
            found = os.fstat(descriptor)
            if not (stat.S_ISREG(found.st_mode) and system.is_owned(found)):
                raise PermissionError(f"{self.path} is no regular file of this user")
            os.utime(descriptor)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Delete the file: nobody lives any more. One that is not ours stays."""
        if not self._has_failed:
            with suppress(OSError):
                self.path.unlink()
