"""Numbers of things in a sentence."""

from __future__ import annotations

from ..listings.counts import BoundedCount


def many(number: int | BoundedCount, one: str, more: str = "") -> str:
    """Return a number with the words for ``one`` or ``more`` such things."""
    count = number if isinstance(number, BoundedCount) else BoundedCount(number)
    words = one if count.exact and count.number == 1 else more or f"{one}s"
    return f"{count.text} {words}"
