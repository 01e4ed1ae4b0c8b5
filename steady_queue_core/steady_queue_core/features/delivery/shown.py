"""How a job is delivered, as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..shown_row import Row


def rows(job: Any, metadata: Any) -> Iterator[Row]:
    """Yield how a job is delivered, and which processes have ended with it."""
    if metadata.crashes:
        crashes = "; ".join(metadata.crashes)
        yield Row("Delivery", (f"{metadata.delivery}, after the end of {crashes}",))
    elif metadata.delivery:
        yield Row("Delivery", (metadata.delivery,))
