"""The supervisor's signs of life: for the probe, the heartbeat file and the service manager."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..base import system
from ..base.shared_heartbeat import SharedHeartbeat

logger = get_logger("steady_queue.supervisor")


class Health:
    """Told of the supervisor's state in each of its rounds."""

    def __init__(self, heartbeat_file: Path | None) -> None:
        self.heartbeat = SharedHeartbeat()
        self.service_manager = ServiceManager()
        self._file = HeartbeatFile(heartbeat_file) if heartbeat_file is not None else None
        #: Whether the service manager knows that all processes are in place.
        self._is_known_ready = False

    def beat(self, wanted: int, in_place: int, retiring: int, *, is_stopping: bool = False) -> None:
        """Note that the supervisor comes round; ``wanted`` processes are to be in place."""
        self.heartbeat.beat(wanted, in_place, is_stopping=is_stopping)
        if self._file is not None:
            self._file.touch()
        if in_place >= wanted and not self._is_known_ready and not is_stopping:
            self._is_known_ready = True
            self.service_manager.ready()
        draining = f", {retiring} are ending" if retiring else ""
        state = "stopping: " if is_stopping else ""
        self.service_manager.beat(f"{state}{in_place} of {wanted} processes at work{draining}")

    def reload_begins(self) -> None:
        """Note that new code is tried."""
        self.service_manager.reloading()
        self._is_known_ready = True

    def reload_refused(self) -> None:
        """Note that the present code goes on: the next round tells so."""
        self._is_known_ready = False

    def stop_begins(self) -> None:
        """Note that the supervisor stops."""
        self.service_manager.stopping()

    def end(self) -> None:
        """Note that the supervisor has ended."""
        if self._file is not None:
            self._file.remove()


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


class ServiceManager:
    """Sends notifications; does nothing where no service manager asks for them."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A name that begins with @ is in the abstract namespace of sockets.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._wants_beats = _is_watched(environment)
        self._status = ""

    def ready(self) -> None:
        """Say that all processes are in place, at the start or after a reload."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Say that new code is to take over."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Say that the service ends."""
        self._send("STOPPING=1")

    def beat(self, status: str) -> None:
        """Feed the watchdog, and tell what the service does if that has changed."""
        lines = ["WATCHDOG=1"] if self._wants_beats else []
        if status != self._status:
            self._status = status
            lines.append(f"STATUS={status}")
        if lines:
            self._send(*lines)

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        # It must not hold up the supervisor.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(lines).encode(), self._address)


def _is_watched(environment: Mapping[str, str]) -> bool:
    """Whether a watchdog wants signs of life of this process."""
    if not environment.get("WATCHDOG_USEC", "").isdigit():
        return False
    return environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
