"""The fair key of a job: among these keys a fair queue shares its workers."""

from __future__ import annotations

from ..entries import entry
from ..storable import LONGEST_KEY, is_storable

#: The name of the key in the metadata of a job.
NAME = "fair"


class FairKey:
    """The key of a job of a fair queue, as its metadata tell later moves; a job without one has the
    empty key."""

    @staticmethod
    def of(value: object) -> str | None:
        """Return what was stored, or ``None`` for anything else."""
        is_key = isinstance(value, str) and len(value) <= LONGEST_KEY and is_storable(value)
        return str(value) if is_key else None

    @classmethod
    def read(cls, metadata: object) -> str | None:
        """Return the key in the metadata of a job; ``None``: it has none, or they are damaged."""
        return cls.of(entry(metadata, NAME))
