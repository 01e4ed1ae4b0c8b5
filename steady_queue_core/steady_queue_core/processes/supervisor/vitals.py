"""The supervisor's signs of life: for the probe, the heartbeat file and the service manager."""

from __future__ import annotations

from pathlib import Path

from ..base.pulse import Pulse
from .heartbeat_file import HeartbeatFile
from .service_manager import ServiceManager


class Vitals:
    """Told of the supervisor's state in each of its rounds."""

    def __init__(self, heartbeat_file: Path | None) -> None:
        self.pulse = Pulse()
        self.service_manager = ServiceManager()
        self._file = HeartbeatFile(heartbeat_file) if heartbeat_file is not None else None
        #: Whether the service manager knows that all processes are in place.
        self._is_known_ready = False

    def beat(self, wanted: int, in_place: int, outgoing: int, *, is_stopping: bool = False) -> None:
        """Note that the supervisor comes round; ``wanted`` processes are to be in place."""
        self.pulse.beat(wanted, in_place, is_stopping=is_stopping)
        if self._file is not None:
            self._file.touch()
        if in_place >= wanted and not self._is_known_ready and not is_stopping:
            self._is_known_ready = True
            self.service_manager.ready()
        draining = f", {outgoing} are ending" if outgoing else ""
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
