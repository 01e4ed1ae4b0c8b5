"""The span around an attempt."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.util.types import AttributeValue

from ...logging import trace_id
from ..harmless import harmless
from . import carrier, names
from .options import PARENT, TracingOptions
from .telemetry import Telemetry, note_failure
from .workers import queues_of


class Processing:
    """One attempt at a job, of a function in its thread or of a coroutine in its task."""

    def __init__(self, telemetry: Telemetry, options: TracingOptions, context: Any) -> None:
        self.telemetry, self.context = telemetry, context
        task = context.task_result.task
        self.queue, self.task = str(task.queue_name), str(task.module_path)
        self._began = time.perf_counter()
        creation, ambient = carrier.extracted(context.headers), contexts.get_current()
        known, surrounding = carrier.span_context(creation), carrier.span_context(ambient)
        links = [] if known is None else [trace.Link(known)]
        parent = carrier.with_baggage(creation, ambient)
        if options.propagate == PARENT and known is not None:
            parent = trace.set_span_in_context(trace.NonRecordingSpan(known), parent)
            if surrounding is not None:
                links.append(trace.Link(surrounding))
        self._span = telemetry.tracer.start_span(
            names.span_name(names.PROCESS, self.queue),
            context=parent,
            kind=trace.SpanKind.CONSUMER,
            attributes=attributes_of(context),
            links=links,
        )
        self._current = trace.set_span_in_context(self._span, parent)
        self._tokens: Any = None

    def __enter__(self) -> Processing:
        known = carrier.span_context(self._current)
        shown = None if known is None else trace.format_trace_id(known.trace_id)
        self._tokens = contexts.attach(self._current), trace_id.set(shown)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)
        attached, shown = self._tokens
        trace_id.reset(shown)
        contexts.detach(attached)

    @harmless
    def _end(self, error: BaseException | None) -> None:
        failed = None
        try:
            ending = self.context.ending_of(error)
            self._span.set_attribute(names.OUTCOME, str(ending))
            if error is not None and ending.is_failure:
                failed = names.error_type(error)
                note_failure(self._span, error)
        finally:
            self._span.end()
        seconds = time.perf_counter() - self._began
        self.telemetry.processed(self.queue, self.task, seconds, failed)


def attributes_of(context: Any) -> dict[str, AttributeValue]:
    """Return the attributes of the span of an attempt, as far as they are known at its start."""
    result, task = context.task_result, context.task_result.task
    found: dict[str, AttributeValue] = {
        **names.basic(names.PROCESS, str(task.queue_name)),
        names.MESSAGE_ID: str(result.id),
        names.BODY_SIZE: context.size,
        names.TASK: str(task.module_path),
        names.PRIORITY: int(task.priority),
        names.ATTEMPT: int(context.attempt),
    }
    if result.worker_ids:
        worker = result.worker_ids[-1]
        found[names.CLIENT_ID] = worker
        if (queues := queues_of(worker)) is not None:
            found[names.CONSUMER_GROUP] = queues
    if result.enqueued_at is not None and result.last_attempted_at is not None:
        waited = (result.last_attempted_at - result.enqueued_at).total_seconds()
        found[names.WAIT] = round(max(0.0, waited) * 1000)
    if context.batch_id is not None:
        found[names.CONVERSATION_ID] = str(context.batch_id)
    return found
