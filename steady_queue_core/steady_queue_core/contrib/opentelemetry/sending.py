"""The span around an enqueue."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.util.types import AttributeValue

from ...compat import TaskResult
from ..harmless import harmless
from . import carrier, names
from .options import TracingOptions
from .telemetry import Telemetry, note_failure


class Sending:
    """One enqueue, of one call or of many."""

    def __init__(self, telemetry: Telemetry, options: TracingOptions, calls: Sequence[Any]) -> None:
        self.telemetry = telemetry
        self.queues = Counter(str(call.task.queue_name) for call in calls)
        self.queue = next(iter(self.queues)) if len(self.queues) == 1 else None
        self._began = time.perf_counter()
        # Runs of a recurring task would all be parts of one trace, which never ends.
        is_recurring = any(call.recurring is not None for call in calls)
        self._span = telemetry.tracer.start_span(
            names.span_name(names.SEND, self.queue),
            context=contexts.Context() if is_recurring else None,
            kind=trace.SpanKind.PRODUCER,
            attributes=attributes_of(calls, self.queue, options),
        )
        self._token: Any = None
        #: The calls, with the context of the trace in their headers.
        self.calls = self._carrying(calls)

    def __enter__(self) -> Sending:
        self._token = contexts.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        contexts.detach(self._token)
        self._end(error)

    @harmless
    def note_stored(self, results: Sequence[TaskResult]) -> None:
        """Take note of the result of a single call: the id of its job, if it has one already."""
        if len(results) == 1:
            [result] = results
            if result.id:
                self._span.set_attribute(names.MESSAGE_ID, str(result.id))
            if getattr(result, "duplicate", False):
                self._span.set_attribute(names.DUPLICATE, True)

    def _carrying(self, calls: Sequence[Any]) -> Sequence[Any]:
        token = contexts.attach(trace.set_span_in_context(self._span))
        try:
            headers = carrier.injected()
        finally:
            contexts.detach(token)
        return [call.carrying(headers) for call in calls] if headers else calls

    @harmless
    def _end(self, error: BaseException | None) -> None:
        failed = None if error is None else names.error_type(error)
        if error is not None:
            note_failure(self._span, error)
        self._span.end()
        seconds = time.perf_counter() - self._began
        self.telemetry.operated(names.SEND, self.queue, seconds, failed)
        for queue, count in self.queues.items():
            self.telemetry.sent(count, queue, failed)


def attributes_of(
    calls: Sequence[Any], queue: str | None, options: TracingOptions
) -> dict[str, AttributeValue]:
    """Return the attributes of the span of these calls."""
    found: dict[str, AttributeValue] = {**names.basic(names.SEND, queue)}
    backend = calls[0].task.get_backend()
    if getattr(backend, "stores_jobs", False):
        found[names.NAMESPACE] = backend.database
    if len(calls) > 1:
        found[names.BATCH_COUNT] = len(calls)
    found |= _common([_of_one(call, options) for call in calls])
    if len(calls) > 1:
        found.pop(names.BODY_SIZE, None)
    return found


def _of_one(call: Any, options: TracingOptions) -> dict[str, AttributeValue]:
    task = call.task
    found: dict[str, AttributeValue] = {
        names.TASK: task.module_path,
        names.PRIORITY: int(task.priority),
        names.BODY_SIZE: call.size,
    }
    if task.run_after is not None:
        found[names.SCHEDULED_AT] = task.run_after.isoformat()
    if (delay := getattr(task, "delay", None)) is not None:
        found[names.DELAY] = round(delay.total_seconds() * 1000)
    if call.batch_id is not None:
        found[names.CONVERSATION_ID] = str(call.batch_id)
    if call.recurring is not None:
        found[names.RECURRING_KEY] = call.recurring
    limit = getattr(call, "limit", None)
    if options.concurrency_keys and limit is not None:
        found[names.CONCURRENCY_KEY] = limit.key
    return found


def _common(each: Sequence[dict[str, AttributeValue]]) -> dict[str, AttributeValue]:
    """Return what all of these have in common."""
    first, *others = each
    return {
        name: value for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }  # fmt: skip
