"""The trace that a job was enqueued in, from its headers."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: By header, where its value has the id: that of W3C, which OpenTelemetry writes, and Sentry's.
FORMS = {
    "traceparent": re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}\b"),
    "sentry-trace": re.compile(r"([0-9a-f]{32})-[0-9a-f]{16}(?:-[01])?\Z"),
}


def trace_id_of(headers: Mapping[str, str]) -> str:
    """Return the id of the trace, as it is to be looked up where traces are; empty: none."""
    for name, form in FORMS.items():
        if found := form.match(headers.get(name, "")):
            return found[1]
    return ""
