"""What a unique job keeps of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..fact import fact
from .key import JobKey


@dataclass(frozen=True, kw_only=True)
class UniqueFacts:
    """What a job keeps."""

    __slots__ = ()

    #: The values of the job's unique key; see ``JobKey``.
    unique: tuple[Any, ...] | None = fact(
        is_valid=lambda value: JobKey.of(value) is not None, is_signed=False, is_shared=False
    )

    @property
    def unique_key(self) -> JobKey | None:
        """The unique key of the job."""
        return JobKey.of(self.unique)
