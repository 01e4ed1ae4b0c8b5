"""Total: what several rows of statistics have counted together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..statistics import histogram


class Row(NamedTuple):
    """A row of statistics, whose values may be anything. Durations are milliseconds."""

    span: Any
    minute: Any
    queue: Any
    task: Any
    enqueued: Any
    finished: Any
    failed: Any
    retried: Any
    lost: Any
    wait_ms: Any
    run_ms: Any
    wait_max: Any
    run_max: Any
    wait_histogram: Any
    run_histogram: Any


@dataclass(slots=True)
class Total:
    """The sums of rows. Histograms are told apart until somebody asks: many are equal."""

    enqueued: int = 0
    finished: int = 0
    failed: int = 0
    retried: int = 0
    lost: int = 0
    wait_ms: int = 0
    run_ms: int = 0
    wait_max: int = 0
    run_max: int = 0
    #: The latest minute in which a job failed, since 1970; 0: none.
    last_failure: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Add what a row has counted; nothing for values that are no numbers."""
        self.enqueued += _number(row.enqueued)
        self.finished += _number(row.finished)
        self.failed += _number(row.failed)
        self.retried += _number(row.retried)
        self.lost += _number(row.lost)
        self.wait_ms += _number(row.wait_ms)
        self.run_ms += _number(row.run_ms)
        self.wait_max = max(self.wait_max, _number(row.wait_max))
        self.run_max = max(self.run_max, _number(row.run_max))
        if _number(row.failed):
            self.last_failure = max(self.last_failure, row.minute)
        if isinstance(row.wait_histogram, str):
            self.waits[row.wait_histogram] += 1
        if isinstance(row.run_histogram, str):
            self.runs[row.run_histogram] += 1

    @property
    def ended(self) -> int:
        """Jobs that have ended."""
        return self.finished + self.failed

    @property
    def attempts(self) -> int:
        """Attempts that have ended, or were lost."""
        return self.ended + self.retried + self.lost

    @property
    def failed_share(self) -> float | None:
        """The share of failed jobs among those that have ended; ``None`` if none has."""
        return self.failed / self.ended if self.ended else None

    @property
    def retried_share(self) -> float | None:
        """The share of attempts after which the job ran again."""
        return self.retried / self.attempts if self.attempts else None

    @property
    def run_mean(self) -> float | None:
        """How long attempts took on average."""
        number = self.ended + self.retried
        return self.run_ms / number if number else None

    def wait(self, share: float) -> float | None:
        """Return how long that share of the jobs waited at most; ``None`` if there are none."""
        return quantile(_summed(self.waits), share, self.wait_max)

    def run(self, share: float) -> float | None:
        """Return how long that share of the attempts took at most; ``None`` if there are none."""
        return quantile(_summed(self.runs), share, self.run_max)


def quantile(counters: list[int], share: float, most: float) -> float | None:
    """Return the duration up to which that share of what a histogram counts lies, in milliseconds;
    ``most`` is the longest of all. It is estimated within the power of two that it is in."""
    wanted, before = share * sum(counters), 0
    if not wanted:
        return None
    for position, counter in enumerate(counters):
        if counter and before + counter >= wanted:
            lower = histogram.BOUNDS[position - 1] if position else 0
            inside = position < len(histogram.BOUNDS)
            upper = histogram.BOUNDS[position] if inside else max(most, lower)
            found = lower + (upper - lower) * (wanted - before) / counter
            return min(found, most) if most >= lower else found
        before += counter
    return float(most)


def _summed(texts: Counter[str]) -> list[int]:
    counters = [0] * histogram.SIZE
    for text, times in texts.items():
        for position, counter in enumerate(histogram.read(text)):
            counters[position] += times * counter
    return counters


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
