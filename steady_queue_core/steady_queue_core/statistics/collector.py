"""Collector: counts in the memory of a process what becomes of jobs, and stores it now and then."""

from __future__ import annotations

import math
import secrets
import time

from ..dialects import ClaimedJob, Ending, Outcome
from ..models import Statistic
from .tally import ALL_TIME, KEPT, MINUTE, Tally

#: Seconds between two times that counts are stored.
INTERVAL = 10.0
#: Most queues and tasks that are told apart in a minute; others are counted together.
MOST_SERIES = 500
#: Stands for those others, and for what is unknown.
OTHERS = ""
#: Minutes without a row stored after which a process becomes another writer: half of the time after
#: which totals are taken for those of a process that has ended.
MOST_PAUSE = KEPT[ALL_TIME] // 2
#: Minutes after which counts that could not be stored are given up: the rows of their minute may
#: have been rolled up.
MOST_LATE = 24 * 60

FINISHED, FAILED, RETRIED = Ending.FINISHED, Ending.FAILED, Ending.RETRIED

Names = tuple[str, str]
Series = tuple[int, str, str]


class Collector:
    """The counts of one process, by minute, queue and task. In one thread.

    What is stored are the totals of a minute, and of all time, in rows that no other process
    writes. So it does no harm to store them again when an answer of the database was lost.
    """

    def __init__(self) -> None:
        #: Tells the rows of this process from those of all others, also of an earlier program in
        #: the same process.
        self.writer = secrets.randbits(62)
        self._tallies: dict[Series, Tally] = {}
        #: Those of the present minute that have changed, by queue and task.
        self._present: dict[Names, Tally] = {}
        self._changed: set[Series] = set()
        #: The tallies as they were when they were last stored.
        self._stored: dict[Series, Tally] = {}
        #: What this writer has stored for all time, by queue and task; and what it is about to.
        self._totals: dict[Names, Tally] = {}
        self._gained: dict[Names, Tally] = {}
        self._stored_minute = 0
        #: The present minute, and the Unix time at which the next one begins.
        self._minute = 0
        self._turns_at = 0.0
        self._next_store = 0.0
        #: Whether the database does not take the counts, although it answers.
        self.is_refused = False

    def add(self, claim: ClaimedJob, outcome: Outcome, now: float, ended: float) -> None:
        """Count an outcome that is stored ``now``, of an attempt that had ``ended`` by then; both
        are Unix times by the database's clock."""
        # Runs for each job, so it takes the short way to a tally that has changed already.
        if now >= self._turns_at:
            self._turn(int(now // 60))
        names, ending = (outcome.queue_name, claim.task_path), outcome.ending
        tally = self._present.get(names) or self._tally(names)
        if ending is FINISHED:
            tally.finished += 1
        elif ending is FAILED:
            tally.failed += 1
        elif ending is RETRIED and outcome.attempts > claim.attempts:
            tally.retried += 1
        else:
            tally.released += 1
            return
        try:
            start = outcome.last_attempted_at.timestamp()  # type: ignore[union-attr]  # See below.
            tally.note_run(int((ended - start) * 1000))
            if claim.attempts == 0:
                tally.note_wait(int((start - claim.enqueued_at.timestamp()) * 1000))
        except (AttributeError, TypeError, ValueError, OverflowError):
            pass  # Rows may hold anything in place of an instant.

    def add_lost(self, claim: ClaimedJob, now: float) -> None:
        """Count an attempt that was lost with its process."""
        if now >= self._turns_at:
            self._turn(int(now // 60))
        self._tally((claim.queue_name, claim.task_path)).lost += 1

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
        if self._stored_minute and self._minute - self._stored_minute >= MOST_PAUSE:
            self._begin_anew()
        self._gained = self._gains()
        # As text: SQLite may hold a name of bytes.
        totals = sorted(self._gained.items(), key=lambda item: [*map(str, item[0])])
        changed = sorted(self._changed, key=lambda series: (series[0], *map(str, series[1:])))
        minutes = [(series, self._tallies[series]) for series in changed]
        return [
            *(self._row(ALL_TIME, (0, *names), tally) for names, tally in totals),
            *(self._row(MINUTE, series, tally) for series, tally in minutes),
        ]

    def note_stored(self) -> None:
        """Take note that all ``rows`` are stored; forget the minutes that are over."""
        self.is_refused = False
        self._totals.update(self._gained)
        for series in self._changed:
            self._stored[series] = self._tallies[series].since(None)
        self._changed.clear()
        self._present.clear()
        for series in [each for each in self._tallies if each[0] < self._minute]:
            del self._tallies[series]
            self._stored.pop(series, None)
        self._stored_minute = self._minute
        self.postpone()

    def _gains(self) -> dict[Names, Tally]:
        """Return the totals of all time that have changed, as they are now."""
        found: dict[Names, Tally] = {}
        for series in self._changed:
            names = series[1:]
            if names not in self._totals and len(self._totals) >= 2 * MOST_SERIES:
                names = OTHERS, OTHERS
            total = found.get(names)
            if total is None:
                total = found[names] = self._totals.get(names, Tally()).since(None)
            total.add(self._tallies[series].since(self._stored.get(series)))
        return found

    def _begin_anew(self) -> None:
        """Become another writer: the totals of the present one may have been added up with those
        of processes that have ended."""
        self.writer = secrets.randbits(62)
        self._totals.clear()
        self._stored_minute = self._minute

    def _row(self, span: int, series: Series, tally: Tally) -> Statistic:
        minute, queue_name, task_path = series
        return Statistic(
            span=span,
            minute=minute,
            queue_name=queue_name,
            task_path=task_path,
            writer=self.writer,
            stored_minute=self._minute,
            **tally.values(),
        )

    def postpone(self, seconds: float | None = None) -> None:
        """Store nothing for a while: it was stored just now, or could not be."""
        self._next_store = time.monotonic() + (INTERVAL if seconds is None else seconds)

    def _tally(self, names: Names) -> Tally:
        """Return the tally of the present minute that is to change."""
        # The database's clock, as a process knows it, may go back a little. A minute that is over
        # may be forgotten: counted anew, it would replace the row that it has.
        minute, (queue_name, task_path) = self._minute, names
        series = minute, queue_name, task_path
        tally = self._tallies.get(series)
        if tally is None:
            if len(self._tallies) >= MOST_SERIES:
                series = minute, queue_name, OTHERS
                if len(self._tallies) >= 2 * MOST_SERIES:
                    series = minute, OTHERS, OTHERS
            tally = self._tallies.setdefault(series, Tally())
        self._changed.add(series)
        if len(self._present) < MOST_SERIES:
            self._present[names] = tally
        return tally

    def _turn(self, minute: int) -> None:
        """Begin another minute: what is left of the last one is due."""
        self._minute, self._turns_at = minute, (minute + 1) * 60.0
        self._present.clear()
        if not self._changed:
            self._tallies.clear()
            self._stored.clear()
            self.postpone()
            return
        if not self.is_refused:
            self._next_store = 0.0
        for series in [each for each in self._tallies if each[0] < minute - MOST_LATE]:
            del self._tallies[series]
            self._stored.pop(series, None)
            self._changed.discard(series)
