"""Which batch a job belongs to, as its metadata say it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ... import arguments
from ...arguments import DeserializationError

#: The name of the link in the metadata of a job.
NAME = "batch"


class Link(NamedTuple):
    """Which batch a job belongs to; stored with its metadata."""

    batch_id: int
    #: Whether other jobs may wait for this one.
    has_dependents: bool = False
    #: Whether the job is a callback of the batch, rather than a member.
    is_callback: bool = False

    @property
    def stored(self) -> tuple[Any, ...]:
        """The values, without those at the end that are as usual."""
        if self.is_callback:
            return tuple(self)
        return tuple(self[:2]) if self.has_dependents else (self.batch_id,)

    @classmethod
    def of(cls, values: object) -> Link | None:
        """Return what was stored, or ``None`` for anything else."""
        if not isinstance(values, tuple) or not 1 <= len(values) <= len(cls._fields):
            return None
        found = cls(*values)
        is_valid = type(found.batch_id) is int and 0 < found.batch_id < 2**63
        return found if is_valid and all(type(each) is bool for each in values[1:]) else None

    @classmethod
    def read(cls, metadata: object) -> Link | None:
        """Return the link in the metadata of a job; ``None``: it has none, or they are damaged."""
        if metadata is None or f'"{NAME}"' not in (text := str(metadata)):
            return None
        return _shared_link(text) if len(text) <= LONGEST_SHARED else _link(text)


def _link(text: str) -> Link | None:
    try:
        found: Any = arguments.decode(text, resolve_models=False)
    except DeserializationError:
        return None
    return Link.of(found.get(NAME)) if isinstance(found, dict) else None


#: Most members of a batch have the same metadata.
_shared_link = lru_cache(maxsize=256)(_link)
LONGEST_SHARED = 500
