"""The tracer and the instruments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import metrics, trace

from ... import __version__
from ..harmless import harmless
from . import names

SCOPE = "steady_queue_core.contrib.opentelemetry"
SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
#: Bounds of durations in seconds, as the conventions advise; tasks may take longer.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 60, 600, 3600)


class Telemetry:
    """Makes spans and counts, by the given providers or those of the project, which may come
    later."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self.tracer_provider, self.meter_provider = tracer_provider, meter_provider
        self.tracer = trace.get_tracer(SCOPE, __version__, tracer_provider, SCHEMA)
        self.meter = metrics.get_meter(SCOPE, __version__, meter_provider, SCHEMA)
        self._sent = self.meter.create_counter(
            names.SENT_MESSAGES, "{message}", "Number of jobs that were enqueued."
        )
        self._consumed = self.meter.create_counter(
            names.CONSUMED_MESSAGES, "{message}", "Number of jobs that workers have claimed."
        )
        self._operation = self._duration(
            names.OPERATION_DURATION, "Duration of enqueuing, claiming and settling."
        )
        self._process = self._duration(names.PROCESS_DURATION, "Duration of attempts.")

    def sent(self, count: int, queue: str, error: str | None) -> None:
        """Count jobs that were enqueued, or were to be."""
        self._sent.add(count, _with_error(names.basic(names.SEND, queue), error))

    def consumed(self, count: int, queue: str) -> None:
        """Count jobs that were claimed."""
        self._consumed.add(count, names.basic(names.RECEIVE, queue))

    def operated(
        self, operation: str, queue: str | None, seconds: float, error: str | None = None
    ) -> None:
        """Record how long a statement took."""
        attributes = _with_error(names.basic(operation, queue), error)
        self._operation.record(seconds, attributes)

    def processed(self, queue: str, task: str, seconds: float, error: str | None) -> None:
        """Record how long an attempt took."""
        attributes = {**names.basic(names.PROCESS, queue), names.TASK: task}
        self._process.record(seconds, _with_error(attributes, error))

    def _duration(self, name: str, description: str) -> metrics.Histogram:
        options: Any = {"explicit_bucket_boundaries_advisory": BOUNDS}
        try:
            return self.meter.create_histogram(name, "s", description, **options)
        except TypeError:  # The advice is younger than our oldest version of the API.
            return self.meter.create_histogram(name, "s", description)


@harmless
def note_failure(span: trace.Span, error: BaseException) -> None:
    """Say in a span that ``error`` has ended it."""
    span.set_attribute(names.ERROR_TYPE, names.error_type(error))
    span.set_status(trace.Status(trace.StatusCode.ERROR, names.message_of(error)))
    span.record_exception(error)


def _with_error(attributes: Mapping[str, str], error: str | None) -> dict[str, str]:
    found = dict(attributes)
    return found if error is None else {**found, names.ERROR_TYPE: error}
