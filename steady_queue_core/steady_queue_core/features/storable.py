"""What every database stores as a key."""

from __future__ import annotations

import re

LONGEST_KEY = 255

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether every database stores this text as it is."""
    return "\0" not in text and (text.isascii() or _SURROGATE.search(text) is None)
