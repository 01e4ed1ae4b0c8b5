"""The rate limit of a job: stored with its metadata, and asked for before each of its starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from ... import arguments
from ...arguments import DeserializationError, TaskArgumentError
from ...durations import LONGEST
from ..entries import UNLIMITED, entry
from ..storable import LONGEST_KEY, is_storable

#: The name of the limit in the metadata of a job.
NAME = "rate"
#: The name of its slot there: microseconds since 1970, and the attempts before it. Negative ones
#: are those of jobs that are to start before, as soon as their rate is free.
SLOT = "slot"

LARGEST_RATE = 1_000_000
SHORTEST_PERIOD = timedelta(seconds=1)


class JobRate(NamedTuple):
    """How many jobs of a key may start: ``to`` in each ``per``, and ``burst`` more in one go."""

    key: str
    to: int
    per: timedelta
    burst: int = 0

    @property
    def stored(self) -> tuple[Any, ...]:
        """The values, as they are stored."""
        return tuple(self) if self.burst else tuple(self)[:-1]

    @classmethod
    def of(cls, values: object) -> JobRate | None:
        """Return what was stored, or ``None`` for anything else."""
        if not isinstance(values, tuple) or not 3 <= len(values) <= len(cls._fields):
            return None
        found = cls(*values)
        is_valid = (
            isinstance(found.key, str)
            and 0 < len(found.key) <= LONGEST_KEY
            and is_storable(found.key)
            and _is_count(found.to, 1)
            and isinstance(found.per, timedelta)
            and SHORTEST_PERIOD <= found.per <= LONGEST
            and _is_count(found.burst, 0)
        )
        return found if is_valid else None

    @classmethod
    def read(cls, metadata: object) -> JobRate | None:
        """Return the limit in the metadata of a job; ``None``: it has none, or they are damaged."""
        return cls.of(entry(metadata, NAME))


def slot_in(metadata: object) -> int | None:
    """Return the slot in the metadata of a job that waits for it; ``None``: it has none."""
    found = entry(metadata, SLOT)
    is_slot = isinstance(found, tuple) and [type(each) for each in found] == [int, int]
    return found[0] if is_slot else None


def with_slot(metadata: str, slot: int) -> str:
    """Return the metadata of a job that has a slot with another one; the same if that cannot be."""
    try:
        values = arguments.decode(metadata, resolve_models=False)
        values[SLOT] = (slot, values[SLOT][1])
        return arguments.encode(values, limits=UNLIMITED, root="metadata")
    except (DeserializationError, TaskArgumentError, LookupError, TypeError):
        return metadata


def _is_count(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= LARGEST_RATE
