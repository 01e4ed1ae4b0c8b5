"""How a job is delivered, as it is shown."""

from __future__ import annotations

from typing import Any

from ..shown_row import Parts


def delivery(job: Any, metadata: Any) -> Parts:
    """Return how a job is delivered, and which processes have ended with it."""
    if metadata.crashes:
        crashes = "; ".join(metadata.crashes)
        return (f"{metadata.delivery}, after the end of {crashes}",)
    return (metadata.delivery,) if metadata.delivery else ()
