"""Scope: which database, time, queue and task a page is about."""

from __future__ import annotations

from dataclasses import dataclass

#: Minutes that count as lately, for rates.
LATELY = 10
#: Minutes with a rate of their own beside the rows of queues.
RECENT = 60


@dataclass(frozen=True)
class Window:
    """A length of time that ends now. All numbers are minutes."""

    name: str
    label: str
    length: int
    #: The length of a step of what is counted, and of what is timed. It begins with one of these.
    step: int
    timed_step: int
    #: The time between two samples of the lengths of queues.
    between_samples: int
    #: The length of what a row of a chart's table tells of.
    row: int

    def steps(self, minute: int) -> range:
        """Return the beginnings of the steps of a window that ends in this minute."""
        return range(self._first(minute), minute + 1, self.step)

    def timed_steps(self, minute: int) -> range:
        """Return the beginnings of the steps of what is timed."""
        return range(self._first(minute), minute + 1, self.timed_step)

    def _first(self, minute: int) -> int:
        return minute - minute % self.timed_step - self.length + self.timed_step

    def samples(self, minute: int) -> range:
        """Return the minutes whose samples are shown."""
        last = minute - minute % self.between_samples
        first = last - self.length + self.between_samples
        return range(first, last + 1, self.between_samples)


HOUR = Window("1h", "1 hour", 60, 1, 1, 1, 2)
DAY = Window("24h", "24 hours", 24 * 60, 60, 60, 10, 60)
WEEK = Window("7d", "7 days", 7 * 24 * 60, 60, 6 * 60, 60, 6 * 60)
WINDOWS = {each.name: each for each in (HOUR, DAY, WEEK)}


@dataclass(frozen=True)
class Scope:
    """What an overview is of; an empty name stands for all queues, or all tasks."""

    using: str
    window: Window = HOUR
    queue: str = ""
    task: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.queue or self.task)

    def has(self, queue: str, task: str) -> bool:
        """Whether a queue and task are in the scope."""
        return self.has_queue(queue) and (not self.task or task == self.task)

    def has_queue(self, queue: str) -> bool:
        """Whether a queue is in the scope."""
        return not self.queue or queue == self.queue
