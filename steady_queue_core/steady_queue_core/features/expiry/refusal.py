"""The refusal of a job that has not started by its deadline."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...errors import TaskExpired
from ..refusal import Refusal
from .options import deadline_of


def refusal(expires: Any, enqueued_at: datetime, present: datetime) -> TaskExpired | None:
    """Return the error of a job that has expired; ``None``: it has not."""
    deadline = deadline_of(expires, enqueued_at)
    if deadline is None or deadline > present:
        return None
    return TaskExpired(
        f"The job expired at {deadline.isoformat(' ', 'milliseconds')}, before it started."
    )


REFUSALS = (Refusal("expires", refusal),)
