"""Finding ready jobs by rank, while many jobs of paused or excluded queues lie among them.

InnoDB locks what it reads, and MariaDB keeps the locks of rows that a condition excludes. So jobs
are found without locks, some more than are wanted, and those of them that no other transaction has
locked are then locked by their ids.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from steady_queue_core.dialects import QueueSelector, portable, tables
from steady_queue_core.dialects.portable import Span

from .batches import Result, Statement
from .claim_sql import PAUSED, Row, named

#: How many more jobs than are wanted are read: other workers may be about to claim as many.
SPARE = 50
#: How many further jobs are read if too few of these were free.
MAX_FURTHER = 200

_FOUND = f"""
(SELECT r.job_id AS id, r.`rank` AS position
 FROM {tables.READY} r FORCE INDEX (steady_queue_ready_poll)
 WHERE {{where}} AND r.queue_name NOT IN ({PAUSED.sql})
 ORDER BY r.`rank`, r.turn LIMIT {{limit}})"""

# The number of its rows counts, up to the limit.
OF_PAUSED = Statement(f"""
SELECT 1 FROM {tables.PAUSES} p STRAIGHT_JOIN {tables.READY} r
FORCE INDEX (steady_queue_ready_queue) ON r.queue_name = p.queue_name
LIMIT {portable.MANY_PAUSED}""")
OF_EXCLUDED = f"""
(SELECT 1 FROM {tables.READY} r FORCE INDEX (steady_queue_ready_queue)
 WHERE {{within}} LIMIT {portable.MANY_PAUSED})"""
# By the loose index scan that both servers have for it.
LAST_BY_RANK = Statement(f"""
SELECT `rank`, MAX(turn) FROM {tables.READY} FORCE INDEX (steady_queue_ready_poll)
GROUP BY `rank`""")


class PausedScan:
    """The scan of one claim. ``bookmarks`` remember what the next one may skip."""

    def __init__(
        self, bookmarks: portable.Bookmarks, limit: int, pick: str, selector: QueueSelector
    ) -> None:
        self._bookmarks, self._limit, self._most = bookmarks, limit, limit + SPARE
        self._excluded = [_within(*each) for each in portable.excluded_ranges(selector)]
        self._began = time.monotonic()
        self._whole, self._asks = bookmarks.looks_at_all, bookmarks.asks
        self._passes_ranks = self._whole and bookmarks.passes_ranks
        #: Whether fewer jobs were locked than are wanted.
        self.is_short = False
        self._spans = bookmarks.spans(self._whole)
        first = self._first(self._most)
        self.statements = [
            *([self._in_the_way] if self._asks else []),
            *([LAST_BY_RANK] if self._passes_ranks else []),
            Statement(pick.replace("{given}", f"({first.sql}) AS given"), first.values),
        ]

    def locked(self, results: Sequence[Result]) -> list[Row]:
        """Record the results of the statements; return the rows that were locked."""
        *others, picked = results
        if self._whole:
            self._bookmarks.looked_at_all(time.monotonic() - self._began)
        if self._passes_ranks:
            self._bookmarks.note_last((rank, turn) for rank, turn in others.pop().rows)
        if self._asks:
            self._bookmarks.answer(len(others.pop().rows))
        self.is_short = len(picked.rows) < self._limit
        return named(picked)

    @property
    def further(self) -> Statement:
        """The statement that reads the ids of jobs behind those that were read."""
        first = self._first(self._most + MAX_FURTHER)
        return Statement(f"{first.sql} OFFSET {int(self._most)}", first.values)

    def finish(self, rows: Sequence[Row], *, found_all: bool) -> None:
        """Move the bookmarks to the jobs that were locked."""
        found = [(str(row["queue_name"]), int(row["rank"]), row["turn"]) for row in rows]
        self._bookmarks.move(found, found_all=found_all)

    @property
    def _in_the_way(self) -> Statement:
        """The statement whose rows are counted for the bookmarks."""
        if not self._excluded:
            return OF_PAUSED
        excluded = [OF_EXCLUDED.format(within=each.sql) for each in self._excluded]
        names = [name for each in self._excluded for name in each.values]
        return Statement(" UNION ALL ".join([f"({OF_PAUSED.sql})", *excluded]), names)

    def _first(self, limit: int) -> Statement:
        """Return a query for the first jobs of the spans, in order."""
        ranges = [where for span in self._spans for where in _ranges(span)]
        not_excluded = "".join(f" AND NOT ({each.sql})" for each in self._excluded)
        parts = [_FOUND.format(where=where + not_excluded, limit=int(limit)) for where in ranges]
        names = [name for each in self._excluded for name in each.values]
        return Statement(f"{' UNION ALL '.join(parts)} LIMIT {int(limit)}", names * len(ranges))


def _within(low: str, end: str | None) -> Statement:
    """Return a condition for the queues in a range of names."""
    if end is None:
        return Statement("r.queue_name >= %s", [low])
    return Statement("r.queue_name >= %s AND r.queue_name < %s", [low, end])


def _ranges(span: Span) -> list[str]:
    if not span.turn:
        return [f"r.`rank` >= {span.rank:d} AND r.`rank` < {span.end:d}"]
    # For (rank, turn) >= (...) the whole index would be read.
    return [
        f"r.`rank` = {span.rank:d} AND r.turn >= {span.turn!r}",
        f"r.`rank` > {span.rank:d} AND r.`rank` < {span.end:d}",
    ]
