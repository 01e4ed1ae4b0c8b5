"""The middleware that is around each enqueue and each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sentry_sdk

from ..harmless import harmless
from ..surrounding import Surrounding
from . import names
from .options import SentryOptions
from .processing import Processing
from .publishing import Publishing


class Reporting(Surrounding):
    """Reports enqueues and attempts, if the project has initialised the SDK. What fails there costs
    no more than the report."""

    def __init__(self, options: SentryOptions) -> None:
        self.options = options

    @harmless
    def around_enqueue(self, calls: Sequence[Any]) -> Publishing | None:
        """Return the span of an enqueue, whose calls carry the context of the trace."""
        return Publishing(self.options, calls) if sentry_sdk.is_initialized() else None

    @harmless
    def around_attempt(self, context: Any) -> Processing | None:
        """Return the scope and the transaction of an attempt."""
        return Processing(self.options, context) if sentry_sdk.is_initialized() else None

    def inherited(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Let callbacks have the trace of their job."""
        names_of_trace = names.TRACE_HEADERS.values()
        return {name: value for name, value in headers.items() if name in names_of_trace}
