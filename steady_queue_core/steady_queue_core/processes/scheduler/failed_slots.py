"""Slots that could not be enqueued, and when they are tried again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

#: The first pause, doubled with each try up to the longest one.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=60)
#: How often a slot is tried.
TRIES = 10


class Failure(NamedTuple):
    """How often the present slot of a task was tried, and until when it is left alone."""

    tries: int
    pause_until: datetime


class FailedSlots:
    """Of each task the slot that could not be enqueued, if that is tried again."""

    def __init__(self) -> None:
        self._failures: dict[str, Failure] = {}

    def due(self, key: str, slot: datetime) -> datetime:
        """Return when a slot may be tried: at its time, or after a pause."""
        failure = self._failures.get(key)
        return slot if failure is None else max(slot, failure.pause_until)

    def pause(self, key: str, present: datetime) -> datetime | None:
        """Return when to try a slot again that has failed; ``None``: that was often enough."""
        failure = self._failures.get(key)
        tries = 1 if failure is None else failure.tries + 1
        if tries >= TRIES:
            return None
        until: datetime = present + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1))
        self._failures[key] = Failure(tries, until)
        return until

    def forget(self, key: str) -> None:
        """Forget the slot of a task, which has another one now, or none."""
        self._failures.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._failures.clear()
