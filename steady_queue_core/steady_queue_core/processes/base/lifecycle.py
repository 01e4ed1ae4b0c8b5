"""Telling the project of the start, the stop and the end of a process."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...models.process import Process
from ...signals import (
    ProcessLifecycle,
    process_pruned,
    process_restarted,
    process_started,
    process_stopped,
    process_stopping,
    send,
)

if TYPE_CHECKING:
    from ..supervisor.child import ManagedProcess


class Lifecycle:
    """Sends each signal once, and none of a process that never registered.

    ``tidy()`` follows those after which the process works on.
    """

    def __init__(
        self, kind: str, name: str, using: str, tidy: Callable[[], object] = lambda: None
    ) -> None:
        self.kind, self.name, self.using, self._tidy = kind, name, using, tidy
        self._about: dict[str, Any] = {}
        self._stopping = False

    @property
    def begun(self) -> bool:
        """Whether the start was told, and the end was not."""
        return bool(self._about)

    def started(self, metadata: dict[str, Any]) -> None:
        """The process has registered."""
        self._about = {
            "process_kind": self.kind,
            "process_name": self.name,
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "metadata": dict(metadata),
            "using": self.using,
        }
        send(process_started, ProcessLifecycle, **self._about)
        self._tidy()

    def stopping(self) -> None:
        """The process takes no more work."""
        if self.begun and not self._stopping:
            self._stopping = True
            send(process_stopping, ProcessLifecycle, **self._about)
            self._tidy()

    def stopped(self, error: BaseException | None = None) -> None:
        """The process has done its work, or ``error`` ended it."""
        self.stopping()
        if self.begun:
            send(process_stopped, ProcessLifecycle, **self._about, error=error)
            self._about = {}


def announce_restart(former: ManagedProcess, successor: ManagedProcess) -> None:
    """Tell that a process of ours was replaced."""
    send(
        process_restarted,
        ProcessLifecycle,
        process_kind=former.spec.kind,
        process_name=former.name,
        pid=former.pid,
        hostname=socket.gethostname(),
        exitcode=former.exit_code,
        replacement_name=successor.name,
        replacement_pid=successor.pid,
        supervisor_pid=os.getpid(),
    )


def announce_pruned(process: Process, using: str) -> None:
    """Tell that a process was declared dead, and its claims were taken away."""
    send(
        process_pruned,
        ProcessLifecycle,
        process_kind=process.kind,
        process_name=process.name,
        pid=process.pid,
        hostname=process.hostname,
        using=using,
    )
