"""The concurrency limit of a job, as its columns hold it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many jobs with the same key may hold a permit at the same time: be ready, or running."""

    key: str
    to: int
    #: How long a permit is safe after the start of the job, and after its process's last heartbeat.
    duration: timedelta
    #: Whether a job that finds no permit when it is due is deleted rather than blocked.
    discards: bool = False
