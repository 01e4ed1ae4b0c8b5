"""The processes of the queue: making providers when one starts, and flushing them when it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from opentelemetry import metrics, trace

from ...signals import (
    process_started,
    process_stopped,
    task_process_started,
    task_process_stopped,
)
from ..harmless import harmless
from .gauges import Gauges
from .options import TracingOptions
from .telemetry import Telemetry
from .workers import note_end, note_start

#: Most seconds for what has gathered to be sent. A worker that stops waits no longer for its task
#: processes.
FLUSH_TIME = 1.5


class Processes:
    """Receives the signals of processes that work: all but supervisors, which fork."""

    def __init__(
        self,
        telemetry: Telemetry,
        options: TracingOptions,
        configure: Callable[[], object] | None,
    ) -> None:
        self.telemetry, self.options, self._configure = telemetry, options, configure
        self.gauges = Gauges(telemetry)
        self._lock = Lock()
        #: The process in which the providers were made.
        self._configured_in: int | None = None

    def connect(self) -> None:
        """Listen from now on."""
        for signal in (process_started, task_process_started):
            signal.connect(self.begin)
        for signal in (process_stopped, task_process_stopped):
            signal.connect(self.end)

    def disconnect(self) -> None:
        """Listen no more."""
        for signal in (process_started, task_process_started):
            signal.disconnect(self.begin)
        for signal in (process_stopped, task_process_stopped):
            signal.disconnect(self.end)

    def begin(
        self, process_kind: str, process_name: str, metadata: Any, using: str, **_: Any
    ) -> None:
        """Receive the start of a process, or of a thread in its place."""
        if process_kind == "supervisor":
            return
        note_start(process_name, metadata)
        if self._configure is not None:
            self._make_providers(self._configure)
        if process_kind == "dispatcher" and self.options.gauges:
            self.gauges.begin(using)

    def _make_providers(self, configure: Callable[[], object]) -> None:
        """Make the providers of this process, once."""
        # Processes that are threads wait for the first of them: the spans of those that do not
        # would be lost.
        with self._lock:
            # After the fork: what sends has a thread, and a connection that is no other process's.
            if self._configured_in != os.getpid():
                self._configured_in = os.getpid()
                configure()

    def end(self, process_kind: str, process_name: str, using: str, **_: Any) -> None:
        """Receive the end of a process, or of a thread in its place."""
        if process_kind == "supervisor":
            return
        note_end(process_name)
        # In a thread: not every exporter heeds a time-out.
        flushing = Thread(target=self.flush, name="steady-queue-flush", daemon=True)
        flushing.start()
        flushing.join(FLUSH_TIME)
        if process_kind == "dispatcher":
            self.gauges.end(using)

    @harmless
    def flush(self) -> None:
        """Send what has gathered in this process."""
        providers: list[Any] = [
            self.telemetry.tracer_provider or trace.get_tracer_provider(),
            self.telemetry.meter_provider or metrics.get_meter_provider(),
        ]
        for provider in providers:
            if hasattr(provider, "force_flush"):
                provider.force_flush(int(FLUSH_TIME * 1000))
