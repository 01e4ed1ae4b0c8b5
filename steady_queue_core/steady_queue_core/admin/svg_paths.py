"""Lines through values, one for each step, as the paths of SVG elements. A step is one wide."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


def line(heights: Sequence[int | None]) -> str:
    """Return a line from the middle of each step to that of the next one; ``None`` is a gap.
    Heights are measured from the top."""
    path, before = [], None
    for step, height in enumerate(heights):
        if height is None:
            pass
        elif before is None:
            # A point alone is a line of no length, with round ends.
            path.append(f"M{step}.5 {height}h0")
        else:
            path.append(_to(height - before))
        before = height
    return "".join(path)


def _to(change: int) -> str:
    if not change:
        return "h1"
    return f"l1 {change}" if change > 0 else f"l1{change}"


def area(heights: Sequence[int], bottom: int) -> str:
    """Return the outline of bars that stand beside each other on the ``bottom``."""
    tops = (f"V{height}h{len([*steps])}" for height, steps in groupby(heights))
    return f"M0 {bottom}{''.join(tops)}V{bottom}z"
