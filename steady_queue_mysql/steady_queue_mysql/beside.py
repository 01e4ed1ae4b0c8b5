"""The ready jobs beside those of paused queues, by rank.

InnoDB locks what it reads, and MariaDB keeps the locks of rows that a condition refuses. So the
jobs are found without locks, some more than are wanted, and those of them that nobody else has
locked are then locked by their ids.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from steady_queue_core.dialects import portable, tables
from steady_queue_core.dialects.portable import Span

from .packets import Answer, Statement

#: How many jobs more than are wanted are looked at: others may be about to claim as many.
SPARE = 50
#: How many others are looked at when too few of these were free.
LARGEST_LOOK = 200

PAUSED = f"SELECT queue_name FROM {tables.PAUSES}"
_FOUND = f"""
(SELECT r.job_id AS id, r.`rank` AS position
 FROM {tables.READY} r FORCE INDEX (steady_queue_ready_poll)
 WHERE {{where}} AND r.queue_name NOT IN ({PAUSED})
 ORDER BY r.`rank`, r.job_id LIMIT {{most}})"""

# As many rows as count, at most.
OF_PAUSED = Statement(f"""
SELECT 1 FROM {tables.PAUSES} p STRAIGHT_JOIN {tables.READY} r
FORCE INDEX (steady_queue_ready_queue) ON r.queue_name = p.queue_name
LIMIT {portable.MANY_PAUSED}""")
# By the loose index scan that both servers have for it.
NEWEST_BY_RANK = Statement(f"""
SELECT `rank`, MAX(job_id) FROM {tables.READY} FORCE INDEX (steady_queue_ready_poll)
GROUP BY `rank`""")


class Look:
    """One claim's look, with what it remembers for the next in ``bookmarks``."""

    def __init__(self, bookmarks: portable.Bookmarks, limit: int, pick: str) -> None:
        self._bookmarks, self._limit, self._most = bookmarks, limit, limit + SPARE
        self._began = time.monotonic()
        self._whole, self._asks = bookmarks.looks_at_all, bookmarks.asks
        self._passes_ranks = self._whole and bookmarks.passes_ranks
        #: Whether fewer jobs were locked than are wanted.
        self.is_short = False
        self._spans = bookmarks.spans(self._whole)
        self.statements = [
            *([OF_PAUSED] if self._asks else []),
            *([NEWEST_BY_RANK] if self._passes_ranks else []),
            Statement(pick.replace("{given}", f"({_first(self._most, self._spans)}) AS given")),
        ]

    def learn(self, answers: Sequence[Answer]) -> list[Any]:
        """Learn from the answers to the statements; return the rows that were locked."""
        *told, picked = answers
        if self._whole:
            self._bookmarks.looked_at_all(time.monotonic() - self._began)
        if self._passes_ranks:
            self._bookmarks.note_newest((rank, job_id) for rank, job_id in told.pop().rows)
        if self._asks:
            self._bookmarks.answer(len(told.pop().rows))
        self.is_short = len(picked.rows) < self._limit
        return list(picked.rows)

    @property
    def further(self) -> Statement:
        """The statement that reads the ids of jobs behind all that were looked at."""
        sql = _first(self._most + LARGEST_LOOK, self._spans)
        return Statement(f"{sql} OFFSET {int(self._most)}")

    def end(self, rows: Sequence[Any], *, found_all: bool) -> None:
        """Put the bookmarks to what was locked."""
        found = [(str(row[2]), int(row[3]), int(row[0])) for row in rows]
        self._bookmarks.move(found, found_all=found_all)


def _first(most: int, spans: Sequence[Span]) -> str:
    """Return a query for the first ``most`` jobs of ``spans``, in order."""
    parts = [
        _FOUND.format(where=where, most=int(most)) for span in spans for where in _ranges(span)
    ]
    return f"{' UNION ALL '.join(parts)} LIMIT {int(most)}"


def _ranges(span: Span) -> list[str]:
    if not span.job_id:
        return [f"r.`rank` >= {span.rank:d} AND r.`rank` < {span.end:d}"]
    # For (rank, job_id) >= (...) the whole index would be read.
    return [
        f"r.`rank` = {span.rank:d} AND r.job_id >= {span.job_id:d}",
        f"r.`rank` > {span.rank:d} AND r.`rank` < {span.end:d}",
    ]
