"""The span around an enqueue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from ...compat import TaskResult
from ...features.headers.facts import fitting_headers
from ..harmless import harmless
from . import check_ins, names, spans
from .options import SentryOptions


class Publishing:
    """One enqueue, of one call or of many."""

    def __init__(self, options: SentryOptions, calls: Sequence[Any]) -> None:
        self._stack = ExitStack()
        paths = {str(call.task.module_path) for call in calls}
        queues = {str(call.task.queue_name) for call in calls}
        values: dict[str, Any] = {names.SYSTEM: names.STEADY_QUEUE}
        if len(queues) == 1:
            values[names.DESTINATION] = next(iter(queues))
        if len(calls) == 1:
            values[names.BODY_SIZE] = calls[0].size
        else:
            values[names.BATCH_COUNT] = len(calls)
        name = next(iter(paths)) if len(paths) == 1 else f"{len(calls)} calls"
        self._span = self._stack.enter_context(spans.publishing(name, values))
        try:
            #: The calls, with the context of the trace in their headers.
            self.calls = [self._carrying(call, options) for call in calls]
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Publishing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    @harmless
    def note_stored(self, results: Sequence[TaskResult]) -> None:
        """Take note of the result of a single call: the id of its job, if it has one already."""
        if len(results) == 1 and results[0].id:
            self._span.note({names.MESSAGE_ID: str(results[0].id)})

    @harmless
    def _end(self, error: BaseException | None) -> None:
        try:
            if error is not None:
                self._span.fail()
        finally:
            self._stack.close()

    def _carrying(self, call: Any, options: SentryOptions) -> Any:
        headers: dict[str, str] = {}
        if call.recurring is None:
            # Runs of a recurring task would all be parts of one trace, which never ends.
            headers |= self._span.headers() if options.propagate_traces else {}
        elif options.monitors:
            headers |= check_ins.headers_of(call.recurring_task)
        return call.carrying(fitting_headers(headers)) if headers else call
