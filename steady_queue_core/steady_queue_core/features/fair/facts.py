"""What a job of a fair queue keeps of its key."""

from __future__ import annotations

from dataclasses import dataclass

from ..fact import fact
from .key import FairKey


@dataclass(frozen=True, kw_only=True)
class FairFacts:
    """What a job keeps."""

    __slots__ = ()

    #: The job's key in a fair queue; see ``FairKey``.
    fair: str | None = fact(
        is_valid=lambda value: FairKey.of(value) is not None, is_signed=False, is_shared=False
    )
