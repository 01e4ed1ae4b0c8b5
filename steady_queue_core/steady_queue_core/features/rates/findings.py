"""What the doctor says of jobs that wait for their rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...doctor.finding import Finding, info
from ...listings.wording import duration, name


def of_scheduled(job: Any, metadata: Any, when: str) -> Iterator[Finding]:
    """Yield that a job waits for its slot; ``when`` says when it is due."""
    rate = metadata.rate_limit
    if rate is not None and metadata.slot_of(job.attempts) is not None:
        yield info(
            "job-rate-limited",
            f"Job {job.pk} waits for its slot: the key {name(rate.key)!r} has {rate.to} starts in "
            f"{duration(rate.per)}; {when}.",
            "Raise the limit if that is too slow, or give urgent jobs another key.",
        )
