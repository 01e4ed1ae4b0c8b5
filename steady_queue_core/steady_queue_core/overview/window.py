"""Window: how far back a page looks, and in which steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """A length of time that ends now. All numbers are minutes."""

    name: str
    label: str
    length: int
    #: The length of a step of what is counted.
    step: int
    #: The time between two samples of the lengths of queues.
    between_samples: int
    #: The length of what a row of a chart's table tells of.
    row: int

    def steps(self, minute: int) -> range:
        """Return the beginnings of the steps of a window that ends in this minute."""
        last = minute - minute % self.step
        return range(last - self.length + self.step, last + 1, self.step)

    def samples(self, minute: int) -> range:
        """Return the minutes whose samples are shown."""
        last = minute - minute % self.between_samples
        first = last - self.length + self.between_samples
        return range(first, last + 1, self.between_samples)


HOUR = Window("1h", "1 hour", 60, 1, 1, 2)
DAY = Window("24h", "24 hours", 24 * 60, 60, 10, 60)
WEEK = Window("7d", "7 days", 7 * 24 * 60, 60, 60, 6 * 60)
WINDOWS = {each.name: each for each in (HOUR, DAY, WEEK)}
