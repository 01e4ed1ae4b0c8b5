"""The middleware that is around each enqueue and each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..harmless import harmless
from ..surrounding import Surrounding
from . import carrier
from .options import TracingOptions
from .processing import Processing
from .sending import Sending
from .telemetry import Telemetry


class Tracing(Surrounding):
    """Makes spans of enqueues and attempts. What fails there costs no more than the span."""

    def __init__(self, telemetry: Telemetry, options: TracingOptions) -> None:
        self.telemetry, self.options = telemetry, options

    @harmless
    def around_enqueue(self, calls: Sequence[Any]) -> Sending:
        """Return the span of an enqueue, whose calls carry the context of the trace."""
        return Sending(self.telemetry, self.options, calls)

    @harmless
    def around_attempt(self, context: Any) -> Processing:
        """Return the span of an attempt."""
        return Processing(self.telemetry, self.options, context)

    def inherited(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Let callbacks have the trace of their job."""
        return carrier.of_trace(headers)
