"""The rate limit of a job, as it is shown."""

from __future__ import annotations

from typing import Any

from ...durations import in_words
from ..shown_row import Parts, To
from .stored import JobRate


def rate_limit(job: Any, metadata: Any) -> Parts:
    """Return the rate limit of a job."""
    rate = metadata.rate_limit
    if rate is None:
        return ()
    return (To("rate", rate.key, f"{rate.key}: {rate_in_words(rate)}"),)


def rate_in_words(rate: JobRate) -> str:
    """Return a rate such as ``100 in 1 minute, burst 20``."""
    burst = f", burst {rate.burst}" if rate.burst else ""
    return f"{rate.to} in {in_words(rate.per)}{burst}"
