"""Spans of Sentry's SDK, in both of its modes: those that are sent with their transaction, and
those that are sent on their own ("streaming")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import sentry_sdk

from . import names

Values = Mapping[str, Any]


class AnySpan(Protocol):
    """A span of either kind."""

    def note(self, values: Values) -> None:
        """Set data of the span."""

    def fail(self) -> None:
        """Say that something went wrong."""

    def headers(self) -> dict[str, str]:
        """Return the context of the trace, as headers of a job."""


class _Span:
    """A span that is sent with its transaction."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def note(self, values: Values) -> None:
        for name, value in values.items():
            self._span.set_data(name, value)

    def fail(self) -> None:
        self._span.set_status("internal_error")

    def headers(self) -> dict[str, str]:
        return _headers(span=self._span)


class _StreamedSpan:
    """A span that is sent on its own."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def note(self, values: Values) -> None:
        self._span.set_attributes(dict(values))

    def fail(self) -> None:
        self._span.status = "error"

    def headers(self) -> dict[str, str]:
        return _headers(span=self._span)


class _NoSpan:
    """Stands for a span outside of any that is streamed."""

    def note(self, values: Values) -> None:
        pass

    def fail(self) -> None:
        pass

    def headers(self) -> dict[str, str]:
        return _headers()


def is_streaming() -> bool:
    """Whether the SDK sends spans on their own: then it makes no transactions."""
    try:
        from sentry_sdk.tracing_utils import has_span_streaming_enabled
    except ImportError:  # It is older than that.
        return False
    return bool(has_span_streaming_enabled(sentry_sdk.get_client().options))


@contextmanager
def publishing(name: str, values: Values) -> Iterator[AnySpan]:
    """Be in the span of an enqueue."""
    if not is_streaming():
        with sentry_sdk.start_span(op=names.PUBLISH, name=name, origin=names.ORIGIN) as plain:
            span: AnySpan = _Span(plain)
            span.note(values)
            yield span
    elif sentry_sdk.traces.get_current_span() is None:
        yield _NoSpan()
    else:
        attributes = {"sentry.op": names.PUBLISH, "sentry.origin": names.ORIGIN, **values}
        with sentry_sdk.traces.start_span(name=name, attributes=attributes) as streamed:
            yield _StreamedSpan(streamed)


@contextmanager
def processing(name: str, headers: Mapping[str, str], values: Values) -> Iterator[AnySpan]:
    """Be in the transaction of an attempt, which goes on with the trace in ``headers``."""
    incoming = dict(headers)
    if is_streaming():
        sentry_sdk.traces.continue_trace(incoming)
        attributes = {
            "sentry.op": names.PROCESS,
            "sentry.origin": names.ORIGIN,
            "sentry.segment.name.source": "task",
            **values,
        }
        with sentry_sdk.traces.start_span(
            name=name, attributes=attributes, parent_span=None
        ) as streamed:
            yield _StreamedSpan(streamed)
        return
    transaction = sentry_sdk.continue_trace(
        incoming,
        op=names.PROCESS,
        name=name,
        source="task",
        origin=names.ORIGIN,
    )
    sampled_by = {"steady_queue": {"task": name, **values}}
    with sentry_sdk.start_transaction(transaction, custom_sampling_context=sampled_by) as plain:
        span = _Span(plain)
        plain.set_status("ok")
        span.note(values)
        yield span


def trace_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a trace from those of a job."""
    return {name: headers[ours] for name, ours in names.TRACE_HEADERS.items() if ours in headers}


def _headers(**options: Any) -> dict[str, str]:
    found = sentry_sdk.get_current_scope().iter_trace_propagation_headers(**options)
    return {
        names.TRACE_HEADERS[name]: str(value) for name, value in found
        if name in names.TRACE_HEADERS
    }  # fmt: skip
