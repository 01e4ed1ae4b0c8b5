"""Spans and counts of what workers ask the database for: claims, and the storing of outcomes."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace

from ...signals import jobs_claimed, jobs_settled
from ..harmless import harmless
from . import carrier, names
from .options import TracingOptions
from .telemetry import Telemetry


class Clients:
    """Receives the signals of workers."""

    def __init__(self, telemetry: Telemetry, options: TracingOptions) -> None:
        self.telemetry, self.options = telemetry, options

    def connect(self) -> None:
        """Listen from now on."""
        jobs_claimed.connect(self.note_claimed)
        jobs_settled.connect(self.note_settled)

    def disconnect(self) -> None:
        """Listen no more."""
        jobs_claimed.disconnect(self.note_claimed)
        jobs_settled.disconnect(self.note_settled)

    @harmless
    def _claimed(self, jobs: Sequence[Any], duration: timedelta, worker: str, using: str) -> None:
        queues = Counter(job.queue_name for job in jobs)
        queue = next(iter(queues)) if len(queues) == 1 else None
        self.telemetry.operated(names.RECEIVE, queue, duration.total_seconds())
        for name, count in queues.items():
            self.telemetry.consumed(count, name)
        self._span(names.RECEIVE, queue, jobs, duration, worker, using)

    @harmless
    def _settled(
        self, jobs: Sequence[Any], duration: timedelta | None, worker: str, using: str
    ) -> None:
        if duration is None:  # It was part of the transaction of the task.
            return
        queues = {job.queue_name for job in jobs}
        queue = next(iter(queues)) if len(queues) == 1 else None
        self.telemetry.operated(names.SETTLE, queue, duration.total_seconds())
        alike: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for job in jobs:
            alike[job.queue_name, job.outcome].append(job)
        for (name, outcome), some in alike.items():
            self._span(names.SETTLE, name, some, duration, worker, using, outcome)

    def _span(
        self,
        operation: str,
        queue: str | None,
        jobs: Sequence[Any],
        duration: timedelta,
        worker: str,
        using: str,
        outcome: str | None = None,
    ) -> None:
        if not self.options.receive_and_settle:
            return
        ended = time.time_ns()
        attributes: dict[str, Any] = {
            **names.basic(operation, queue),
            names.BATCH_COUNT: len(jobs),
            names.CLIENT_ID: worker,
            names.NAMESPACE: using,
        }
        if outcome is not None:
            attributes[names.OUTCOME] = outcome
        span = self.telemetry.tracer.start_span(
            names.span_name(operation, queue),
            context=contexts.Context(),
            kind=trace.SpanKind.CLIENT,
            attributes=attributes,
            links=carrier.links(job.headers for job in jobs),
            start_time=ended - int(duration.total_seconds() * 1e9),
        )
        span.end(ended)

    def note_claimed(
        self, jobs: Sequence[Any], duration: timedelta, process_name: str, using: str, **_: Any
    ) -> None:
        """Receive ``jobs_claimed``."""
        self._claimed(jobs, duration, process_name, using)

    def note_settled(
        self,
        jobs: Sequence[Any],
        duration: timedelta | None,
        process_name: str,
        using: str,
        **_: Any,
    ) -> None:
        """Receive ``jobs_settled``."""
        self._settled(jobs, duration, process_name, using)
