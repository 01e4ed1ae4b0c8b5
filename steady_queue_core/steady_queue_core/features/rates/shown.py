"""The rate limit of a job, as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...durations import in_words
from ..shown_row import Row, To
from .stored import JobRate


def rows(job: Any, metadata: Any) -> Iterator[Row]:
    """Yield the rate limit of a job."""
    rate = metadata.rate_limit
    if rate is not None:
        yield Row("Rate limit", (To("rate", rate.key, f"{rate.key}: {rate_in_words(rate)}"),))


def rate_in_words(rate: JobRate) -> str:
    """Return a rate such as ``100 in 1 minute, burst 20``."""
    burst = f", burst {rate.burst}" if rate.burst else ""
    return f"{rate.to} in {in_words(rate.per)}{burst}"
