"""Packed: the counters of a histogram as one integer, so that one addition adds them all."""

from __future__ import annotations

from functools import lru_cache

from ..statistics import histogram

#: Bytes of each counter: one has up to 62 bits in a row, and 100,000 rows are added at most.
_WIDTH = 12


# A page that refreshes reads the same rows again: those of a week, of 50 queues and tasks.
@lru_cache(maxsize=32_768)
def packed(text: object) -> int:
    """Return the counters that a text has; none for what no histogram is, which a row may hold."""
    found = 0
    for position, counter in enumerate(histogram.read(text)):
        if counter:
            found |= counter << (8 * _WIDTH * position)
    return found


# The median and the longest times of each step are asked for one after the other.
@lru_cache(maxsize=1_024)
def unpacked(counters: int) -> tuple[int, ...]:
    """Return the counters one by one."""
    data = counters.to_bytes(_WIDTH * histogram.SIZE, "little")
    return tuple(
        int.from_bytes(data[start : start + _WIDTH], "little")
        for start in range(0, len(data), _WIDTH)
    )
