"""The middleware that is around each enqueue and each attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import sentry_sdk

from ...compat import TaskResult
from ...middleware import CallT, Middleware
from ..harmless import harmless
from . import names
from .options import SentryOptions
from .processing import Processing
from .publishing import Publishing


class Reporting(Middleware):
    """Reports enqueues and attempts, if the project has initialised the SDK. What fails there costs
    no more than the report."""

    def __init__(self, options: SentryOptions) -> None:
        self.options = options

    def enqueue(
        self, calls: Sequence[CallT], proceed: Callable[[Sequence[CallT]], list[TaskResult]]
    ) -> list[TaskResult]:
        """Store calls, with the context of the trace in their headers."""
        publishing = self._publishing(calls)
        if publishing is None:
            return proceed(calls)
        with publishing:
            results = proceed(publishing.calls)
            publishing.note_stored(results)
        return results

    def inherited(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Let callbacks have the trace of their job."""
        names_of_trace = names.TRACE_HEADERS.values()
        return {name: value for name, value in headers.items() if name in names_of_trace}

    def execute(self, context: Any, proceed: Callable[[], Any]) -> Any:
        """Run a function inside the scope of its attempt."""
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
    def _publishing(self, calls: Sequence[Any]) -> Publishing | None:
        if not calls or not sentry_sdk.is_initialized():
            return None
        return Publishing(self.options, calls)

    @harmless
    def _processing(self, context: Any) -> Processing | None:
        return Processing(self.options, context) if sentry_sdk.is_initialized() else None
