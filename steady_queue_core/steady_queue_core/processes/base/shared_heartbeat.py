"""The supervisor's sign of life, in memory that it shares with the probe."""

from __future__ import annotations

import mmap
import time
from typing import NamedTuple

#: Numbers in the memory: when the supervisor last came round (ns, monotonic clock), how many
#: processes it wants, how many of these do their work, and whether it is stopping.
SIZE = 4 * 8


class Beat(NamedTuple):
    """The state of a supervisor when it last came round."""

    #: Seconds since then.
    age: float
    wanted: int
    in_place: int
    is_stopping: bool


class SharedHeartbeat:
    """Written by the supervisor, read by a process that it has forked, or a thread of it."""

    def __init__(self) -> None:
        self._numbers = memoryview(mmap.mmap(-1, SIZE)).cast("q")

    def beat(self, wanted: int, in_place: int, *, is_stopping: bool) -> None:
        """Record that the supervisor comes round, and its state."""
        self._numbers[1], self._numbers[2], self._numbers[3] = wanted, in_place, is_stopping
        self._numbers[0] = time.monotonic_ns()

    def read(self) -> Beat:
        """Return the state; its age is that of the system's clock before the first beat."""
        age = (time.monotonic_ns() - self._numbers[0]) / 1e9
        return Beat(age, self._numbers[1], self._numbers[2], bool(self._numbers[3]))
