"""Total: what several rows of statistics have counted together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ..statistics import histogram
from ..statistics.tally import HISTOGRAMS, MAXIMA, number

#: What a row of statistics has counted: what is added, what the largest is taken of, histograms.
ADDED = ("enqueued", "finished", "failed", "retried", "lost", "run_ms")
OUTCOMES = ("finished", "failed", "retried", "lost")
COUNTED = (*ADDED, *MAXIMA, *HISTOGRAMS)
#: Bytes of each counter: one has up to 62 bits in a row, and 100,000 rows are added at most.
_WIDTH = 12


class Total(NamedTuple):
    """The sums of rows."""

    enqueued: int = 0
    finished: int = 0
    failed: int = 0
    retried: int = 0
    lost: int = 0
    run_ms: int = 0
    wait_max: int = 0
    run_max: int = 0
    #: The latest minute in which a job failed, since 1970; 0: none.
    last_failure: int = 0
    #: Counters of histograms, packed.
    waits: int = 0
    runs: int = 0

    @classmethod
    def of_each(cls, minutes: Sequence[int], columns: Sequence[Sequence[Any]]) -> Iterator[Total]:
        """Return what rows have counted, by their minutes and their columns ``COUNTED``, which may
        hold anything: what is no number counts as nothing."""
        numbers = [_numbers(each) for each in columns[: -len(HISTOGRAMS)]]
        failed = numbers[ADDED.index("failed")]
        failures = [minute if each else 0 for minute, each in zip(minutes, failed, strict=True)]
        histograms = [map(packed, each) for each in columns[-len(HISTOGRAMS) :]]
        # What _make does, without a call of Python for each row.
        return map(partial(tuple.__new__, cls), zip(*numbers, failures, *histograms, strict=True))

    @classmethod
    def sum_of(cls, totals: Iterable[Total]) -> Total:
        """Return what totals have counted together."""
        together = [*totals]
        if len(together) < 2:
            return together[0] if together else cls()
        columns = [*zip(*together, strict=True)]
        added, largest = columns[: len(ADDED)], columns[len(ADDED) : -len(HISTOGRAMS)]
        return cls(*map(sum, added), *map(max, largest), *map(sum, columns[-len(HISTOGRAMS) :]))

    @classmethod
    def counts_of(cls, totals: Iterable[Total]) -> Total:
        """Return how many attempts of each outcome totals have counted, and nothing else."""
        columns = dict(zip(cls._fields, zip(*totals, strict=True), strict=False))
        return cls(**{name: sum(columns.get(name, ())) for name in OUTCOMES})

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
        return histogram.quantile(unpacked(self.waits), share, self.wait_max)

    def run(self, share: float) -> float | None:
        """Return how long that share of the attempts took at most; ``None`` if there are none."""
        return histogram.quantile(unpacked(self.runs), share, self.run_max)


def _numbers(values: Sequence[Any]) -> Sequence[int]:
    is_sound = {*map(type, values)} <= {int} and min(values, default=0) >= 0
    return values if is_sound else [*map(number, values)]


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
