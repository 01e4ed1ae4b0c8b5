"""A file whose time of change is the supervisor's last sign of life."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ...internal_errors import log_internal_error
from ...logging import about, get_logger

logger = get_logger("steady_queue.supervisor")


class HeartbeatFile:
    """Touched in each round of the supervisor, and removed when it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._has_failed = False

    def touch(self) -> None:
        """Set the time of the file to now; log once that this is impossible."""
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))
            os.utime(self.path, follow_symlinks=False)
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

    def remove(self) -> None:
        """Delete the file: nobody lives any more."""
        with suppress(OSError):
            self.path.unlink()
