"""The rate limit of a job: stored with its metadata, and asked for before each of its starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from ..durations import LONGEST
from .job_key import LONGEST_KEY, is_storable
from .job_metadata import entry

#: The name of the limit in the metadata of a job.
NAME = "rate"

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


def _is_count(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= LARGEST_RATE
