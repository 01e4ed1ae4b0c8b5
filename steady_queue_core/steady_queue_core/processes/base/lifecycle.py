"""Sends the Django signals about the life of a process."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from ...signals import ProcessLifecycle, process_started, process_stopped, process_stopping, send


class Lifecycle:
    """Sends each signal once, and none for a process that never registered.

    ``tidy()`` is called after the signals that do not end the process, to clean up after their
    receivers.
    """

    def __init__(
        self, kind: str, name: str, using: str, tidy: Callable[[], object] = lambda: None
    ) -> None:
        self.kind, self.name, self.using, self._tidy = kind, name, using, tidy
        #: Empty before the start was announced, and after the end was.
        self._payload: dict[str, Any] = {}
        self._stopping = False

    def started(self, metadata: dict[str, Any]) -> None:
        """Announce that the process has registered."""
        self._payload = {
            "process_kind": self.kind,
            "process_name": self.name,
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "metadata": dict(metadata),
            "using": self.using,
        }
        send(process_started, ProcessLifecycle, **self._payload)
        self._tidy()

    def stopping(self) -> None:
        """Announce that the process takes no more work."""
        if self._payload and not self._stopping:
            self._stopping = True
            send(process_stopping, ProcessLifecycle, **self._payload)
            self._tidy()

    def stopped(self, error: BaseException | None = None) -> None:
        """Announce that the process has finished, or was ended by ``error``."""
        self.stopping()
        if self._payload:
            send(process_stopped, ProcessLifecycle, **self._payload, error=error)
            self._payload = {}
