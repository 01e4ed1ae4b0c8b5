"""Collector: counts in the memory of a process what becomes of jobs, and stores it now and then."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

from ..dialects import ClaimedJob, Ending, Outcome
from ..models import Statistic
from .tally import Tally

#: Seconds between two times that counts are stored.
INTERVAL = 10.0
#: Most queues and tasks that are told apart in a minute; others are counted together.
MOST_SERIES = 500
#: Stands for those others, and for what is unknown.
OTHERS = ""
#: Minutes after which counts that could not be stored are given up: the rows of their minute may
#: have been rolled up.
MOST_LATE = 24 * 60

Series = tuple[int, str, str]


class Collector:
    """The counts of one process, by minute, queue and task. In one thread.

    What is stored are the totals of a minute so far, in rows that no other process writes. So it
    does no harm to store them again when an answer of the database was lost.
    """

    def __init__(self) -> None:
        #: Tells the rows of this process from those of all others, also of an earlier program in
        #: the same process.
        self.writer = secrets.randbits(62)
        self._tallies: dict[Series, Tally] = {}
        self._changed: set[Series] = set()
        self._minute = 0
        self._next_store = 0.0

    def add(self, claim: ClaimedJob, outcome: Outcome, now: float, ended: float) -> None:
        """Count an outcome that is stored ``now``, of an attempt that had ``ended`` by then; both
        are Unix times by the database's clock."""
        tally = self._tally(int(now // 60), outcome.queue_name, claim.task_path)
        if outcome.ending is Ending.FINISHED:
            tally.finished += 1
        elif outcome.ending is Ending.FAILED:
            tally.failed += 1
        elif outcome.ending is Ending.RETRIED and outcome.attempts > claim.attempts:
            tally.retried += 1
        else:
            tally.released += 1
            return
        # Rows may hold anything in place of an instant.
        with suppress(AttributeError, TypeError, ValueError, OverflowError):
            start = outcome.last_attempted_at.timestamp()  # type: ignore[union-attr]  # See above.
            tally.note_run(_milliseconds(ended - start))
            if claim.attempts == 0:
                tally.note_wait(_milliseconds(start - claim.enqueued_at.timestamp()))

    def add_lost(self, claim: ClaimedJob, now: float) -> None:
        """Count an attempt that was lost with its process."""
        self._tally(int(now // 60), claim.queue_name, claim.task_path).lost += 1

    @property
    def has_changed(self) -> bool:
        """Whether there is anything to store."""
        return bool(self._changed)

    @property
    def until_due(self) -> float:
        """Seconds until counts have to be stored; infinite while there are none."""
        if not self._changed:
            return math.inf
        return max(0.0, self._next_store - time.monotonic())

    def rows(self) -> list[Statistic]:
        """Return the rows that have changed, in an order in which no two processes lock them in
        each other's way."""
        return [
            Statistic(
                span=1,
                minute=minute,
                queue_name=queue_name,
                task_path=task_path,
                writer=self.writer,
                **self._tallies[minute, queue_name, task_path].values(),
            )
            for minute, queue_name, task_path in sorted(self._changed)
        ]

    def note_stored(self, rows: Sequence[Statistic]) -> None:
        """Take note that rows are stored; forget the minutes that are over."""
        for row in rows:
            series = row.minute, row.queue_name, row.task_path
            self._changed.discard(series)
        for series in [each for each in self._tallies if each[0] < self._minute]:
            if series not in self._changed:
                del self._tallies[series]
        self.postpone()

    def postpone(self) -> None:
        """Store nothing for a while: it was stored just now, or could not be."""
        self._next_store = time.monotonic() + INTERVAL

    def _tally(self, minute: int, queue_name: str, task_path: str) -> Tally:
        if minute > self._minute:
            self._turn(minute)
        series = minute, queue_name, task_path
        tally = self._tallies.get(series)
        if tally is None:
            if len(self._tallies) >= MOST_SERIES:
                series = minute, queue_name, OTHERS
                if len(self._tallies) >= 2 * MOST_SERIES:
                    series = minute, OTHERS, OTHERS
            tally = self._tallies.setdefault(series, Tally())
        self._changed.add(series)
        return tally

    def _turn(self, minute: int) -> None:
        """Begin another minute: what is left of the last one is due."""
        self._minute = minute
        if not self._changed:
            self._tallies.clear()
            self.postpone()
            return
        self._next_store = 0.0
        for series in [each for each in self._tallies if each[0] < minute - MOST_LATE]:
            del self._tallies[series]
            self._changed.discard(series)


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))
