"""The time that a job was enqueued for, as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any


def events(job: Any, metadata: Any) -> Iterator[tuple[str, datetime | None]]:
    """Yield which time of its schedule a job was enqueued for."""
    yield "Intended for", metadata.intended_time
