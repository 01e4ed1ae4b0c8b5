"""Histograms of durations: how many took up to 1 ms, 2 ms, 4 ms, and so on."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Upper bounds of the counters, in milliseconds: powers of two from 1 ms to about 9 minutes. One
#: more counter is for what took longer.
BOUNDS = tuple(1 << power for power in range(20))
SIZE = len(BOUNDS) + 1

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: The longest counter that is read, in digits.
MOST_DIGITS = 12
#: What ``write()`` returns.
_WRITTEN = re.compile(rf"[0-9a-z]{{1,{MOST_DIGITS}}}(,[0-9a-z]{{1,{MOST_DIGITS}}}){{0,{SIZE - 1}}}")


def slot(milliseconds: int) -> int:
    """Return the number of the counter for a duration."""
    if milliseconds <= 1:
        return 0
    position = (milliseconds - 1).bit_length()
    return position if position < SIZE else SIZE - 1


def write(counters: Sequence[int]) -> str:
    """Return counters as text: in base 36, with commas, without the zeros at the end."""
    used = max((at for at, counter in enumerate(counters, 1) if counter), default=0)
    return ",".join(map(_base36, counters[:used]))


def read(text: object) -> list[int]:
    """Return the counters that a text has; zeros for anything else, which a row may hold."""
    counters = [0] * SIZE
    if not isinstance(text, str):
        return counters
    if _WRITTEN.fullmatch(text):
        found = [int(digits, 36) for digits in text.split(",")]
        return found + counters[len(found) :]
    for position, digits in enumerate(text.split(",")[:SIZE]):
        if digits.isascii() and digits.isalnum() and len(digits) <= MOST_DIGITS:
            counters[position] = int(digits, 36)
    return counters


def quantile(counters: Sequence[int], share: float, most: float) -> float | None:
    """Return the duration up to which that share of what a histogram counts lies, in milliseconds;
    ``most`` is the longest of all. It is estimated within the power of two that it is in."""
    wanted, before = share * sum(counters), 0
    if not wanted:
        return None
    for position, counter in enumerate(counters):
        if counter and before + counter >= wanted:
            lower = BOUNDS[position - 1] if position else 0
            inside = position < len(BOUNDS)
            upper = BOUNDS[position] if inside else max(most, lower)
            found = lower + (upper - lower) * (wanted - before) / counter
            return min(found, most) if most >= lower else found
        before += counter
    return float(most)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
