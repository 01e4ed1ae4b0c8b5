"""What a job with a rate limit keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..fact import fact
from .stored import JobRate


def _is_slot(value: Any) -> bool:
    return isinstance(value, tuple) and [type(each) for each in value] == [int, int]


@dataclass(frozen=True, kw_only=True)
class RateFacts:
    """What a job keeps."""

    __slots__ = ()

    #: The values of the job's rate limit; see ``JobRate``.
    rate: tuple[Any, ...] | None = fact(
        is_valid=lambda value: JobRate.of(value) is not None, is_signed=False
    )
    #: The slot of the next start, in microseconds since 1970, and the attempts before it.
    slot: tuple[int, int] | None = fact(is_valid=_is_slot, changes=True, is_shared=False)

    @property
    def rate_limit(self) -> JobRate | None:
        """The rate limit of the job."""
        return JobRate.of(self.rate)

    def slot_of(self, attempts: int) -> int | None:
        """Return the slot that the job has, after so many attempts."""
        return self.slot[0] if self.slot is not None and self.slot[1] == attempts else None
