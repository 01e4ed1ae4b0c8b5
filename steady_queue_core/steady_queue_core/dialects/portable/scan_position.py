"""Where in the index of ready jobs a worker resumes its scan.

Every claim has to step over the same jobs of queues that are paused, or that the worker excludes.
If many of them are at the head of the index, that takes longer than the claim itself. While there
are many, a claim therefore begins where the last one began, rank by rank. From time to time a claim
scans the whole index, to find jobs behind the bookmarks: released, retried, dispatched or committed
late.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import inf, nextafter
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

#: Bookmarks are used if paused queues have so many ready jobs.
MANY_PAUSED = 100
#: Seconds between two counts of them.
ASK_INTERVAL = 1.0
#: Full scans take no more than this share of the time, but are never further apart than this.
SHARE, LONGEST_PAUSE = 0.05, 5.0
#: Below and above all ranks.
LOWEST, HIGHEST = -(2**15), 2**15


class Span(NamedTuple):
    """A part of the index: from a rank and a turn on, up to but excluding another rank."""

    queue_name: str | None
    rank: int
    turn: float
    end: int


class Bookmarks:
    """The bookmarks of one worker: per queue in their order, or for all queues under ``None``.

    Losing them is harmless.
    """

    def __init__(self, queues: Sequence[str] | None = None) -> None:
        self._queues: list[str | None] = [None] if queues is None else list(queues)
        self._marks: dict[str | None, dict[int, float]] = {name: {} for name in self._queues}
        self._used = self._many_paused = False
        self._last: Mapping[int, float] = {}
        self._next_question = time.monotonic() + ASK_INTERVAL
        self._next_whole_look = 0.0
        #: The paused queues, or any other value that changes with them.
        self.paused: Hashable = None

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper, excluded: tuple[str, ...] = ()) -> Bookmarks:
        """Return the bookmarks of ``connection`` for a worker of all queues but ``excluded``."""
        known: dict[tuple[str, ...], Bookmarks]
        known = connection.__dict__.setdefault("steady_queue_bookmarks", {})
        if excluded not in known:
            known[excluded] = cls()
        return known[excluded]

    @property
    def asks(self) -> bool:
        """Whether it is time to count the jobs of paused queues."""
        return time.monotonic() >= self._next_question

    @property
    def looks_at_all(self) -> bool:
        """Whether the next claim must scan the whole index."""
        return not self._used or time.monotonic() >= self._next_whole_look

    @property
    def passes_ranks(self) -> bool:
        """Whether ranks with jobs of paused queues only are skipped, because there are many."""
        return self._many_paused and None in self._marks

    def answer(self, of_paused: int, *, others: bool = False) -> None:
        """Record the number of ready jobs in paused queues.

        ``others`` says that there is something else to step over, such as dead index entries.
        """
        self._next_question = time.monotonic() + ASK_INTERVAL
        self._many_paused = of_paused >= MANY_PAUSED
        used = others or self.passes_ranks
        if used and not self._used:
            self.look_at_all()
        self._used = used

    def note_pauses(self, paused: Hashable) -> bool:
        """Scan the whole index again if the pauses have changed; return whether they have.

        The jobs of a queue that was resumed are behind the bookmarks.
        """
        changed = paused != self.paused
        if changed:
            self.paused = paused
            self._next_question = 0.0
            self.look_at_all()
        return changed

    def look_at_all(self) -> None:
        """Make the next claim scan the whole index."""
        self._next_whole_look = 0.0

    def looked_at_all(self, seconds: float) -> None:
        """Record how long a scan of the whole index took."""
        self._next_whole_look = time.monotonic() + min(LONGEST_PAUSE, seconds / SHARE)

    def note_last(self, turns: Iterable[tuple[int, float]]) -> None:
        """Record the last turn of each rank, as of before a scan of the whole index."""
        self._last = dict(turns)

    def move(self, found: Iterable[tuple[str, int, float]], *, found_all: bool) -> None:
        """Move the bookmark of each rank to the first of the jobs found: (queue, rank, turn) each.

        Ranks before the last job found, or all ranks if every job was found, in which there was
        none have only jobs of paused queues: they are skipped from now on.
        """
        if not self._used:
            return
        first: dict[tuple[str | None, int], float] = {}
        for queue_name, rank, turn in found:
            mark = queue_name if queue_name in self._marks else None, rank
            first[mark] = min(turn, first.get(mark, turn))
        for (name, rank), turn in first.items():
            if name in self._marks:
                self._marks[name][rank] = turn
        if self.passes_ranks:
            last = HIGHEST if found_all else max((rank for _, rank in first), default=LOWEST)
            for rank, turn in self._last.items():
                if rank < last and (None, rank) not in first:
                    after = nextafter(turn, inf)
                    self._marks[None][rank] = max(after, self._marks[None].get(rank, 0.0))

    def spans(self, whole: bool) -> list[Span]:
        """Return the parts of the index to read, in order; everything but what is skipped."""
        spans: list[Span] = []
        for name in self._queues:
            marks = {} if whole else self._marks[name]
            starts = [(LOWEST, 0.0), *((rank, marks[rank]) for rank in sorted(marks))]
            ends = [*(rank for rank, _ in starts[1:]), HIGHEST]
            spans += [Span(name, *start, end) for start, end in zip(starts, ends, strict=True)]
        return spans
