"""Total: what several rows of statistics have counted together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from ..statistics import histogram
from ..statistics.tally import number


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


NONE = (0,) * histogram.SIZE


@dataclass(frozen=True, slots=True)
class Total:
    """The sums of rows."""

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
    #: Counters of histograms.
    waits: Sequence[int] = NONE
    runs: Sequence[int] = NONE

    @classmethod
    def of(cls, row: Row) -> Total:
        """Return what a row has counted; nothing for values that are no numbers."""
        failed = number(row.failed)
        return cls(
            number(row.enqueued),
            number(row.finished),
            failed,
            number(row.retried),
            number(row.lost),
            number(row.wait_ms),
            number(row.run_ms),
            number(row.wait_max),
            number(row.run_max),
            row.minute if failed else 0,
            _counters(row.wait_histogram),
            _counters(row.run_histogram),
        )

    @classmethod
    def sum_of(cls, totals: Iterable[Total]) -> Total:
        """Return what totals have counted together."""
        # By columns: a page sums up ten thousand of them, each some times.
        together = [*totals]
        if len(together) < 2:
            return together[0] if together else cls()
        values: list[Any] = [
            *_by_position(sum, map(_ADDED, together)),
            *_by_position(max, map(_LARGEST, together)),
            _by_position(sum, (each.waits for each in together)),
            _by_position(sum, (each.runs for each in together)),
        ]
        return cls(*values)

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
        return quantile(self.waits, share, self.wait_max)

    def run(self, share: float) -> float | None:
        """Return how long that share of the attempts took at most; ``None`` if there are none."""
        return quantile(self.runs, share, self.run_max)


_ADDED = attrgetter("enqueued", "finished", "failed", "retried", "lost", "wait_ms", "run_ms")
_LARGEST = attrgetter("wait_max", "run_max", "last_failure")


def _by_position(
    of: Callable[[Sequence[int]], int], rows: Iterable[Sequence[int]]
) -> tuple[Any, ...]:
    return tuple(map(of, zip(*rows, strict=True)))


def _counters(text: object) -> Sequence[int]:
    return _read(text) if isinstance(text, str) else NONE


@lru_cache(maxsize=4_096)
def _read(text: str) -> tuple[int, ...]:
    # A page that refreshes reads the same rows again.
    return tuple(histogram.read(text))


def quantile(counters: Sequence[int], share: float, most: float) -> float | None:
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
