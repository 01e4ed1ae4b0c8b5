"""Where in the index of ready jobs a worker goes on to read.

What a claim has to step over, it would step over again and again: with many jobs of paused queues
at the head of all queues, that takes longer than the claim. So, while there are many, a claim
begins where the last one began, rank by rank; now and then one looks at the whole index for jobs
that came to lie behind the bookmark: released, retried, dispatched or committed late.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

#: From so many jobs of a paused queue on bookmarks are used.
MANY_PAUSED = 100
#: Seconds between two questions how many there are.
ASK_INTERVAL = 1.0
#: Looks at the whole index take no more than this share of the time, and come at least so often.
SHARE, LONGEST_PAUSE = 0.05, 5.0
#: Below and above all ranks.
LOWEST, HIGHEST = -(2**15), 2**15


class Span(NamedTuple):
    """A part of the index: from a rank and a job on, before another rank."""

    queue_name: str | None
    rank: int
    job_id: int
    end: int


class Bookmarks:
    """For the queues of one worker: in their order, or all by rank, where the name is ``None``.

    To lose them harms nothing.
    """

    def __init__(self, queues: Sequence[str] | None = None) -> None:
        self._queues: list[str | None] = [None] if queues is None else list(queues)
        self._marks: dict[str | None, dict[int, int]] = {name: {} for name in self._queues}
        self._used = self._many_paused = False
        self._newest: Mapping[int, int] = {}
        self._next_question = time.monotonic() + ASK_INTERVAL
        self._next_whole_look = 0.0
        #: Which queues are paused, or what else changes when that does.
        self.paused: Hashable = None

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> Bookmarks:
        """Return those of ``connection`` for a worker of all queues."""
        found: Bookmarks = connection.__dict__.setdefault("steady_queue_bookmarks", Bookmarks())
        return found

    @property
    def asks(self) -> bool:
        """Whether it is time to ask how much there is to step over."""
        return time.monotonic() >= self._next_question

    @property
    def looks_at_all(self) -> bool:
        """Whether the next claim has to read from the beginning."""
        return not self._used or time.monotonic() >= self._next_whole_look

    @property
    def passes_ranks(self) -> bool:
        """Whether ranks may have jobs of paused queues alone, and many of them."""
        return self._many_paused and None in self._marks

    def answer(self, of_paused: int, *, others: bool = False) -> None:
        """Take note of how many ready jobs are in paused queues, and of whether there is something
        else to step over."""
        self._next_question = time.monotonic() + ASK_INTERVAL
        self._many_paused = of_paused >= MANY_PAUSED
        used = others or self.passes_ranks
        if used and not self._used:
            self.look_at_all()
        self._used = used

    def note_pauses(self, paused: Hashable) -> bool:
        """Look anew when other queues are paused, and say so: the jobs of one that was resumed lie
        behind the bookmarks."""
        changed = paused != self.paused
        if changed:
            self.paused = paused
            self._next_question = 0.0
            self.look_at_all()
        return changed

    def look_at_all(self) -> None:
        """Have the next claim read from the beginning."""
        self._next_whole_look = 0.0

    def looked_at_all(self, seconds: float) -> None:
        """Take note of what it has cost to read from the beginning."""
        self._next_whole_look = time.monotonic() + min(LONGEST_PAUSE, seconds / SHARE)

    def note_newest(self, newest: Iterable[tuple[int, int]]) -> None:
        """Take note of the newest job of each rank, as it was before a look at the whole index."""
        self._newest = dict(newest)

    def move(self, found: Iterable[tuple[str, int, int]], *, found_all: bool) -> None:
        """Put the bookmarks to the first of the jobs that were found, each given by its queue, its
        rank and its id, in each rank.

        Before the last of them, or anywhere if there are no more, the ranks without any have jobs
        of paused queues alone: these are passed over.
        """
        if not self._used:
            return
        first: dict[tuple[str | None, int], int] = {}
        for queue_name, rank, job_id in found:
            place = queue_name if queue_name in self._marks else None, rank
            first[place] = min(job_id, first.get(place, job_id))
        for (name, rank), job_id in first.items():
            if name in self._marks:
                self._marks[name][rank] = job_id
        if self.passes_ranks:
            last = HIGHEST if found_all else max((rank for _, rank in first), default=LOWEST)
            for rank, job_id in self._newest.items():
                if rank < last and (None, rank) not in first:
                    self._marks[None][rank] = max(job_id + 1, self._marks[None].get(rank, 0))

    def spans(self, whole: bool) -> list[Span]:
        """Return what to read, in order, without gaps but for what is passed over."""
        spans: list[Span] = []
        for name in self._queues:
            marks = {} if whole else self._marks[name]
            starts = [(LOWEST, 0), *((rank, marks[rank]) for rank in sorted(marks))]
            ends = [*(rank for rank, _ in starts[1:]), HIGHEST]
            spans += [Span(name, *start, end) for start, end in zip(starts, ends, strict=True)]
        return spans
