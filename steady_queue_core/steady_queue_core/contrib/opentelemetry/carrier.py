"""The context of a trace in the headers of a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opentelemetry import baggage, propagate, trace
from opentelemetry import context as contexts

from ...features.headers.facts import fitting_headers

#: Most links of a span: the limit that SDKs have by default.
MOST_LINKS = 128


def injected() -> dict[str, str]:
    """Return the headers of the current context: ``traceparent`` and others, by the propagators of
    the project. What is too large to be stored is left out, the longest first."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return fitting_headers(carrier)


def extracted(headers: Mapping[str, str]) -> contexts.Context:
    """Return the context in the headers of a job, which nobody has to trust: an empty one if there
    is none."""
    return propagate.extract(headers, context=contexts.Context())


def of_trace(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those headers that the propagators of the project have written."""
    fields = propagate.get_global_textmap().fields
    return {name: value for name, value in headers.items() if name in fields}


def span_context(context: contexts.Context) -> trace.SpanContext | None:
    """Return the span of a context, if it has a valid one."""
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def links(headers: Iterable[Mapping[str, str]]) -> list[trace.Link]:
    """Return links to the contexts in which these jobs were enqueued, as many as a span keeps."""
    found: dict[tuple[int, int], trace.SpanContext] = {}
    for each in headers:
        known = span_context(extracted(each)) if each else None
        if known is not None:
            found[known.trace_id, known.span_id] = known
            if len(found) == MOST_LINKS:
                break
    return [trace.Link(known) for known in found.values()]


def with_baggage(context: contexts.Context, ambient: contexts.Context) -> contexts.Context:
    """Return the ``ambient`` context with the baggage of another one beside its own."""
    for name, value in baggage.get_all(context).items():
        ambient = baggage.set_baggage(name, value, context=ambient)
    return ambient
