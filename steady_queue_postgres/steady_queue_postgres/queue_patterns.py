"""A worker's queue patterns as parameters of the statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steady_queue_core.dialects import ClaimedJob, QueueSelector, portable

from .arrays import array


class Found(NamedTuple):
    """A claim, and the turn that its job had in the queue."""

    turn: float
    claim: ClaimedJob


class QueuePatterns:
    """The queues of a selector: all, some by name, or some by pattern."""

    def __init__(self, selector: QueueSelector) -> None:
        self.takes_all = selector.takes_all
        self._patterns = ("*",) if self.takes_all else selector.patterns
        #: The names, in order, or ``None`` if there are patterns among them.
        self.exact: list[str] | None = None
        if not any(pattern.endswith("*") for pattern in self._patterns):
            self.exact = list(dict.fromkeys(self._patterns))
        lows, highs = zip(*map(_range, self._patterns), strict=True)
        #: The range of names that each pattern matches: from the low one on, before the high one.
        self.ranges: dict[str, str | None] = {"lows": array(lows), "highs": array(highs)}
        ranges = portable.excluded_ranges(selector)
        #: For each range of names that is excluded, whether it has an end.
        self.excluded = tuple(end is not None for _, end in ranges)
        for number, (low, end) in enumerate(ranges):
            self.ranges |= {f"excluded_low_{number}": low, f"excluded_end_{number}": end}

    def in_order(self, found: Iterable[Found]) -> list[Found]:
        """Sort claims by (rank, turn), queue by queue unless all are taken."""
        if self.takes_all:
            return sorted(found, key=_in_order)
        found = list(found)
        positions = {
            name: self._position(name) for name in {each.claim.queue_name for each in found}
        }
        return sorted(found, key=lambda each: (positions[each.claim.queue_name], *_in_order(each)))

    def _position(self, name: str) -> tuple[int, str]:
        fits = (
            position
            for position, pattern in enumerate(self._patterns)
            if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))
        )
        return next(fits), name


def _in_order(found: Found) -> tuple[int, float, int]:
    return found.claim.rank, found.turn, found.claim.job_id


def _range(pattern: str) -> tuple[str, str | None]:
    if pattern.endswith("*"):
        return pattern[:-1], portable.prefix_end(pattern[:-1])
    # No character of a name sorts before this one, so that only the name itself is in the range.
    return pattern, f"{pattern}\x01"
