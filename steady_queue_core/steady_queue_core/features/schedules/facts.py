"""What a job keeps of the schedule that has enqueued it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..fact import fact


def _is_instant(value: object) -> bool:
    return isinstance(value, datetime) and value.utcoffset() is not None


@dataclass(frozen=True, kw_only=True)
class ScheduleFacts:
    """What a job keeps."""

    __slots__ = ()

    #: The slot of the schedule that the job was enqueued for, if its task takes a context.
    intended_time: datetime | None = fact(is_valid=_is_instant, is_shared=False)
