"""The fair key of a job, as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..shown_row import Row


def rows(job: Any, metadata: Any) -> Iterator[Row]:
    """Yield the key of a job in a fair queue."""
    if metadata.fair:
        yield Row("Fair key", (metadata.fair,))
