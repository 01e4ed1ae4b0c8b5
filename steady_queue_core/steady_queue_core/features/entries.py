"""What a dialect has to know of the metadata of a job, one entry at a time."""

from __future__ import annotations

from typing import Any

from .. import arguments
from ..arguments import DEFAULT_LIMITS, DeserializationError, PayloadLimits

#: What is changed later was measured before, and a few bytes are added.
UNLIMITED = PayloadLimits(max_bytes=2**40, max_depth=DEFAULT_LIMITS.max_depth + 2)


def entry(metadata: object, name: str) -> Any:
    """Return what the metadata of a job hold under a name; ``None``: nothing, or they are
    damaged."""
    # SQLite lets a row hold something other than text. Most jobs have no such entry: none is read.
    if metadata is None or f'"{name}"' not in (text := str(metadata)):
        return None
    try:
        found = arguments.decode(text, resolve_models=False)
    except DeserializationError:
        return None
    return found.get(name) if isinstance(found, dict) else None
