"""Tells systemd of the state of the service, by the protocol of ``sd_notify``."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress


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
