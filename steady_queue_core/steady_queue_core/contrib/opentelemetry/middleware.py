"""The middleware that is around each enqueue and each attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ...compat import TaskResult
from ...middleware import CallT, Middleware
from ..harmless import harmless
from . import carrier
from .options import TracingOptions
from .processing import Processing
from .sending import Sending
from .telemetry import Telemetry


class Tracing(Middleware):
    """Makes spans of enqueues and attempts. What fails there costs no more than the span."""

    def __init__(self, telemetry: Telemetry, options: TracingOptions) -> None:
        self.telemetry, self.options = telemetry, options

    def enqueue(
        self, calls: Sequence[CallT], proceed: Callable[[Sequence[CallT]], list[TaskResult]]
    ) -> list[TaskResult]:
        """Store calls, with the context of the trace in their headers."""
        sending = self._sending(calls)
        if sending is None:
            return proceed(calls)
        with sending:
            results = proceed(sending.calls)
            sending.note_stored(results)
        return results

    def inherited(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Let callbacks have the trace of their job."""
        return carrier.of_trace(headers)

    def execute(self, context: Any, proceed: Callable[[], Any]) -> Any:
        """Run a function inside the span of its attempt."""
        processing = self._processing(context)
        if processing is None:
            return proceed()
        with processing:
            return proceed()

    async def aexecute(self, context: Any, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Async version of :meth:`execute`."""
        processing = self._processing(context)
        if processing is None:
            return await proceed()
        with processing:
            return await proceed()

    @harmless
    def _sending(self, calls: Sequence[Any]) -> Sending | None:
        return Sending(self.telemetry, self.options, calls) if calls else None

    @harmless
    def _processing(self, context: Any) -> Processing:
        return Processing(self.telemetry, self.options, context)
