"""How long a job is kept, as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from ...durations import in_words
from ..shown_row import Parts


def kept(job: Any, metadata: Any) -> Parts:
    """Return how long a job is kept after its end, where it says so itself."""
    periods = [("success", metadata.retention), ("failure", metadata.failure_retention)]
    text = ", ".join(
        f"{in_words(period) if isinstance(period, timedelta) else period} after {end}"
        for end, period in periods
        if period is not None
    )
    return (text,) if text else ()


def events(job: Any, metadata: Any) -> Iterator[tuple[str, datetime | None]]:
    """Yield when a job that has ended may be cleared."""
    yield "Kept until", getattr(getattr(job, "retention", None), "expires_at", None)
