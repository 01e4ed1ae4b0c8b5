"""What a feature adds to a call of a task that is about to be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: What a job keeps of a call in its metadata, by the names there.
Facts = Mapping[str, Any]
NOTHING: Facts = {}

Stage = Callable[[Any, Any], Facts]
"""Returns the facts of an ``EncodedCall`` for a backend, and fills in what has a column. Raises
``InvalidTask``."""
