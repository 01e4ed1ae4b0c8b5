"""A worker's queue patterns as parameters of the statements."""

from __future__ import annotations

from collections.abc import Iterable

from steady_queue_core.dialects import ClaimedJob, QueueSelector, portable

from .arrays import array


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

    def in_order(self, claims: Iterable[ClaimedJob]) -> list[ClaimedJob]:
        """Sort ``claims`` by (rank, id), queue by queue unless all are taken."""
        if self.takes_all:
            return sorted(claims, key=lambda claim: (claim.rank, claim.job_id))
        claims = list(claims)
        turns = {name: self._turn(name) for name in {claim.queue_name for claim in claims}}
        return sorted(claims, key=lambda claim: (turns[claim.queue_name], claim.rank, claim.job_id))

    def _turn(self, name: str) -> tuple[int, str]:
        fits = (
            turn
            for turn, pattern in enumerate(self._patterns)
            if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))
        )
        return next(fits), name


def _range(pattern: str) -> tuple[str, str | None]:
    if pattern.endswith("*"):
        return pattern[:-1], portable.prefix_end(pattern[:-1])
    # No character of a name sorts before this one, so that only the name itself is in the range.
    return pattern, f"{pattern}\x01"
