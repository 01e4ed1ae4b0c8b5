"""Claims ready jobs: one statement, alone or together with the settlement of earlier claims."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, ProcessIdentity, QueueSelector, portable

from . import claim_sql
from .clock import read
from .prepared import PreparedStatements, fetch
from .queue_patterns import Found, QueuePatterns
from .scan_position import InTheWay, columns, take_note
from .settle_batch import Batch, held_ids


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    if limit <= 0:
        return []
    claimer = Claimer.of(connection, selector)
    # A claim that has to be planned each time costs more than the probe.
    plans_each_time = PreparedStatements.of(connection) is None
    if plans_each_time and claimer.probes_first and not claimer.finds_any(process):
        return []
    return claimer.exchange(Batch(()), process, limit).claims


class Summary(NamedTuple):
    """The row about a statement as a whole: the first columns of all its rows."""

    claimed_at: float
    held: str | None
    has_waiting: bool
    paused_queues: int
    jobs_of_paused: int | None
    dead_rows: int | None


WIDTH = len(Summary._fields)


class Exchange(NamedTuple):
    """What a statement did that settles claims and makes new ones."""

    #: The ids of the jobs whose claims it ended; ``None``: it has changed nothing.
    held: set[int] | None
    #: Whether a job waits for a permit that it ended. Then it has claimed nothing.
    has_waiting: bool
    claims: list[ClaimedJob]


class Claimer:
    """Claims for one selector, and remembers from claim to claim what saves work. Nothing depends
    on its memory."""

    def __init__(self, connection: BaseDatabaseWrapper, selector: QueueSelector) -> None:
        self._connection = connection
        self._patterns = QueuePatterns(selector)
        self._bookmarks = portable.Bookmarks(self._patterns.exact)
        self._is_idle = False

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper, selector: QueueSelector) -> Claimer:
        """Return the connection's claimer for ``selector``."""
        known: dict[QueueSelector, Claimer]
        known = connection.__dict__.setdefault("steady_queue_claimers", {})
        if selector not in known:
            known[selector] = cls(connection, selector)
        return known[selector]

    @property
    def probes_first(self) -> bool:
        """Whether the last claim found nothing, and the next one has no other question to ask."""
        return self._is_idle and not self._bookmarks.asks

    def finds_any(self, process: ProcessIdentity) -> bool:
        """Return whether there is anything to claim, at a lower cost than a claim's."""
        bookmarks, looked_at_all = self._bookmarks, self._bookmarks.looks_at_all
        values = {**_named(process), "limit": 1}
        [(finds_any, paused_queues)] = self._fetch(
            claim_sql.probe(self._pick, self._patterns.excluded), values
        )
        if bookmarks.note_pauses(paused_queues):
            return True
        if finds_any and looked_at_all:
            # The job may lie behind the bookmark, where the claim that follows has to find it.
            bookmarks.look_at_all()
        elif not finds_any and not self._connection.in_atomic_block:
            bookmarks.move((), found_all=True)
        return bool(finds_any)

    def exchange(self, batch: Batch, process: ProcessIdentity, limit: int) -> Exchange:
        """Settle the outcomes of ``batch`` and claim up to ``limit`` jobs."""
        values = {**_named(process), "limit": limit, "asks": self._bookmarks.asks, **batch.values}
        statement = claim_sql.claiming(self._pick, batch.parts, self._patterns.excluded)
        rows = self._fetch(statement, values)
        [summary] = [Summary._make(row[:WIDTH]) for row in rows if row[WIDTH] is None]
        held = held_ids(summary.held)
        if held is None:
            return Exchange(None, has_waiting=False, claims=[])
        claimed_at = read(summary.claimed_at)
        found = self._patterns.in_order(
            Found(row[WIDTH], ClaimedJob.from_values(row[WIDTH + 1 :], claimed_at, read))
            for row in rows
            if row[WIDTH] is not None
        )
        self._is_idle = not found
        self._move_bookmarks(summary, found, found_all=len(found) < limit)
        return Exchange(held, summary.has_waiting, [claim for _, claim in found])

    @property
    def _pick(self) -> str:
        if self._patterns.takes_all:
            return claim_sql.BY_RANK
        return claim_sql.BY_PATTERN if self._patterns.exact is None else claim_sql.BY_NAME

    def _move_bookmarks(self, summary: Summary, found: Sequence[Found], *, found_all: bool) -> None:
        if not self._connection.in_atomic_block:  # A rollback would return jobs behind them.
            turns = [(claim.queue_name, claim.rank, turn) for turn, claim in found]
            self._bookmarks.move(turns, found_all=found_all)
        if summary.dead_rows is not None:
            in_the_way = InTheWay(summary.dead_rows, summary.jobs_of_paused or 0)
            take_note(self._bookmarks, in_the_way)
        self._bookmarks.note_pauses(summary.paused_queues)

    def _fetch(self, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        whole = self._bookmarks.looks_at_all
        values |= columns(self._bookmarks.spans(whole)) | self._patterns.ranges
        began = time.monotonic()
        if whole and self._bookmarks.passes_ranks:
            last = fetch(self._connection, claim_sql.LAST_BY_RANK, {})
            self._bookmarks.note_last((rank, turn) for rank, turn in last)
        rows = fetch(self._connection, statement, values)
        if whole:
            self._bookmarks.looked_at_all(time.monotonic() - began)
        return rows


def _named(process: ProcessIdentity) -> dict[str, Any]:
    return {"process_id": process.id, "process_name": process.name}
