"""How many ready jobs queues have, as this process knows it.

A look at a queue reads as many rows as it counts. What it finds is good for up to a second, and the
process adds what it enqueues itself. Only before it refuses something it looks again, if the looks
take a small part of its time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Any, NamedTuple

from django.core.signals import setting_changed

#: Seconds for which a length is good, and after which one thread looks while others go on with it.
GOOD_FOR, RENEWED_AFTER = 1.0, 0.75
#: A full queue is looked at again after so many times what the last look has taken, in seconds.
PAUSE_FACTOR, SHORTEST_PAUSE = 20, 0.01
#: So many queues are remembered before old lengths are forgotten.
MANY = 1_000

#: Counts the ready jobs of a queue up to a number.
Count = Callable[[str, int], int]


class Wanted(NamedTuple):
    """Room for jobs in a queue."""

    queue_name: str
    #: How many of them are ready at once; even for none the queue must have room for one.
    jobs: int
    limit: int


class Full(NamedTuple):
    """A queue without that room."""

    wanted: Wanted
    length: int


@dataclass(eq=False, slots=True)
class _Length:
    """The length of one queue."""

    #: What the last look has found, when it began, and what it took.
    counted: int = 0
    looked_at: float = -inf
    took: float = 0.0
    #: The jobs for which room was taken, ever, and when that look began.
    taken: int = 0
    taken_before: int = 0
    #: Whether a thread is looking.
    is_renewed: bool = False

    @property
    def known(self) -> int:
        return self.counted + self.taken - self.taken_before

    def full(self, wanted: Wanted) -> Full | None:
        has_room = self.known + max(1, wanted.jobs) <= wanted.limit
        return None if has_room else Full(wanted, self.known)

    def is_old(self, present: float) -> bool:
        age = present - self.looked_at
        return age >= (GOOD_FOR if self.is_renewed else RENEWED_AFTER)

    def may_be_renewed(self, present: float) -> bool:
        pause = max(SHORTEST_PAUSE, PAUSE_FACTOR * self.took)
        return not self.is_renewed and present - self.looked_at >= min(GOOD_FOR, pause)


class QueueLengths:
    """The lengths of the queues of one database, for all threads of a process."""

    def __init__(self) -> None:
        # Held for moments, and never during a look: that may wait for the database, or for a
        # connection which a thread has that waits for the lock.
        self._lock = Lock()
        self._lengths: dict[tuple[str, int], _Length] = {}

    def take(self, wanted: Sequence[Wanted], count: Count, *, keep: bool = True) -> Full | None:
        """Take room in all of these queues, and ``keep`` it; if one is full, take none and return
        that one."""
        for each in wanted:
            if self._is_old(each):
                self._look(each, count)
        full = self._take(wanted, keep)
        looks = len(wanted)
        while full is not None and looks and self._may_look_again(full.wanted):
            self._look(full.wanted, count)
            full, looks = self._take(wanted, keep), looks - 1
        return full

    def _take(self, wanted: Iterable[Wanted], keep: bool) -> Full | None:
        with self._lock:
            found = [(each, self._of(each)) for each in wanted]
            for each, length in found:
                if (full := length.full(each)) is not None:
                    return full
            for each, length in found if keep else ():
                length.taken += each.jobs
        return None

    def _is_old(self, wanted: Wanted) -> bool:
        with self._lock:
            return self._of(wanted).is_old(time.monotonic())

    def _may_look_again(self, wanted: Wanted) -> bool:
        with self._lock:
            return self._of(wanted).may_be_renewed(time.monotonic())

    def _look(self, wanted: Wanted, count: Count) -> None:
        with self._lock:
            length = self._of(wanted)
            length.is_renewed, taken = True, length.taken
        try:
            began = time.monotonic()
            counted = count(wanted.queue_name, wanted.limit)
            took = time.monotonic() - began
            with self._lock:
                if began >= length.looked_at:
                    length.counted, length.looked_at, length.took = counted, began, took
                    length.taken_before = taken
        finally:
            length.is_renewed = False

    def _of(self, wanted: Wanted) -> _Length:
        key = wanted.queue_name, wanted.limit
        if key not in self._lengths:
            if len(self._lengths) >= MANY:
                self._forget_old()
            self._lengths[key] = _Length()
        return self._lengths[key]

    def _forget_old(self) -> None:
        least = time.monotonic() - GOOD_FOR
        self._lengths = {
            key: each
            for key, each in self._lengths.items()
            if each.is_renewed or each.looked_at > least
        }


_by_database: dict[str, QueueLengths] = {}


def lengths_in(using: str) -> QueueLengths:
    """Return what this process knows of the queues in a database."""
    return _by_database.setdefault(using, QueueLengths())


def forget(**kwargs: Any) -> None:
    """Forget all lengths: with other settings, and in a forked process, whose locks may be held."""
    _by_database.clear()


def _forget_with_settings(*, setting: str, **kwargs: Any) -> None:
    if setting in ("TASKS", "DATABASES"):
        forget()


setting_changed.connect(_forget_with_settings, dispatch_uid="steady_queue_forget_lengths")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
