"""One form for arguments that are equal, to be compared as they are stored."""

from __future__ import annotations

import json
from typing import Any

from . import tags


def canonical(text: str) -> Any:
    """Return encoded arguments as JSON values, in which the items of dicts are in one order."""
    return json.loads(text, object_hook=_in_order)


def _in_order(stored: dict[str, Any]) -> dict[str, Any]:
    pairs = stored.get(tags.DICT)
    if pairs is None:
        return dict(sorted(stored.items()))
    # Keys and values in turn. Sets are in order as they are stored.
    items = sorted(zip(pairs[::2], pairs[1::2], strict=True), key=json.dumps)
    return {tags.DICT: [each for item in items for each in item]}
