"""When a job expires, as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ...dialects.portable import aware


def events(job: Any, metadata: Any) -> Iterator[tuple[str, datetime | None]]:
    """Yield when a job expires that waits for its first start."""
    has_begun = job.started_at or job.finished_at or job.errors
    if not has_begun and getattr(job, "claimedexecution", None) is None:
        yield "Expires", metadata.deadline(aware(job.enqueued_at))
