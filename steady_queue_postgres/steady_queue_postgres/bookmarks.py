"""Where in the index of ready jobs a worker goes on to read.

Entries of jobs that were claimed stay in the index as long as any transaction may still want to see
them, and every claim steps over them, at a tenth of a microsecond each: behind a backup of an hour
that adds up to a second per claim. No vacuum setting helps. So, while there are many of them, a
claim begins where the last one began, rank by rank; now and then one looks at the whole index for
jobs that came to lie behind the bookmark: released, retried, dispatched or committed late.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from steady_queue_core.dialects import ClaimedJob

#: From so many dead rows on bookmarks are used.
MANY = 10_000
#: Seconds between two questions how many there are.
ASK_INTERVAL = 1.0
#: Looks at the whole index take no more than this share of the time, and come at least so often.
SHARE, LONGEST_PAUSE = 0.05, 5.0
#: Below and above all ranks.
LOWEST, HIGHEST = -(2**15), 2**15

Spans = dict[str, list[int] | list[str | None]]


class Bookmarks:
    """For the queues of one worker: in their order, or all by rank, where the name is ``None``."""

    def __init__(self, queues: Sequence[str] | None) -> None:
        self._queues: list[str | None] = [None] if queues is None else list(queues)
        self._marks: dict[str | None, dict[int, int]] = {name: {} for name in self._queues}
        self._used = False
        self._next_question = time.monotonic() + ASK_INTERVAL
        self._next_whole_look = 0.0

    @property
    def asks(self) -> bool:
        """Whether it is time to ask how many dead rows there are."""
        return time.monotonic() >= self._next_question

    @property
    def looks_at_all(self) -> bool:
        """Whether the next claim has to read from the beginning."""
        return not self._used or time.monotonic() >= self._next_whole_look

    def answer(self, dead_rows: float) -> None:
        """Take note of how many dead rows there are."""
        self._next_question = time.monotonic() + ASK_INTERVAL
        self._used = dead_rows >= MANY

    def looked_at_all(self, seconds: float) -> None:
        """Take note of what it has cost to read from the beginning."""
        self._next_whole_look = time.monotonic() + min(LONGEST_PAUSE, seconds / SHARE)

    def move(self, claims: Iterable[ClaimedJob]) -> None:
        """Put the bookmarks to the first of the claimed jobs, by rank: others may follow late."""
        if not self._used:
            return
        first: dict[tuple[str | None, int], int] = {}
        for claim in claims:
            name = claim.queue_name if claim.queue_name in self._marks else None
            place = name, claim.rank
            first[place] = min(claim.job_id, first.get(place, claim.job_id))
        for (name, rank), job_id in first.items():
            if name in self._marks:
                self._marks[name][rank] = job_id

    def spans(self, whole: bool) -> Spans:
        """Return what to read, in order, as columns; without gaps but for what is passed over."""
        rows: list[tuple[str | None, int, int, int]] = []
        for name in self._queues:
            marks = {} if whole else self._marks[name]
            starts = [(LOWEST, 0), *((rank, marks[rank]) for rank in sorted(marks))]
            ends = [*(rank for rank, _ in starts[1:]), HIGHEST]
            rows += [(name, *start, end) for start, end in zip(starts, ends, strict=True)]
        queues, ranks, jobs, ends_of = map(list, zip(*rows, strict=True))
        return {"queues": queues, "ranks": ranks, "jobs": jobs, "ends": ends_of}
