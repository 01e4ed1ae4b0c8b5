"""Which metadata of a job a signature covers: what its call says, and nothing that the queue
changes later."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .. import arguments
from ..arguments import DEFAULT_LIMITS, DeserializationError, PayloadLimits, TaskArgumentError

#: The name under which a job of a graph keeps its place in it.
NODE = "node"
_UNLIMITED = PayloadLimits(max_bytes=2**40, max_depth=DEFAULT_LIMITS.max_depth + 2)
#: Calls of one task often have the same metadata.
_LONGEST_SHARED = 500


def covered(stored: object) -> str | None:
    """Return, always in the same form, what is covered of the metadata in a row; ``None``:
    nothing. What is damaged is returned as it is, and so is never what was signed."""
    if stored is None:
        return None
    # SQLite lets a row hold something other than text.
    text = str(stored)
    return _covered_shared(text) if len(text) <= _LONGEST_SHARED else _covered(text)


def node_in(stored: object) -> str | None:
    """Return the place of a job in its graph; ``None``: it has none, or it is damaged."""
    if stored is None or f'"{NODE}"' not in (text := str(stored)):
        return None
    try:
        found = _decoded(text).get(NODE)
    except DeserializationError:
        return None
    return found if isinstance(found, str) else None


def _covered(text: str) -> str | None:
    # The models are loaded where the task framework is missing, too, which the checks report.
    from ..features.declared import UNSIGNED

    try:
        values = _decoded(text)
        kept = {name: values[name] for name in sorted(values) if name not in UNSIGNED}
        return arguments.encode(kept, limits=_UNLIMITED, root="metadata") if kept else None
    except (DeserializationError, TaskArgumentError):
        return text


_covered_shared = lru_cache(maxsize=256)(_covered)


def _decoded(text: str) -> dict[str, Any]:
    found = arguments.decode(text, resolve_models=False)
    if not isinstance(found, dict):
        raise DeserializationError("The metadata are no object.")
    return found
