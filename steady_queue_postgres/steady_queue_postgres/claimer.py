"""A connection's way of claiming for one worker, with what it remembers from claim to claim."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, Outcome, ProcessIdentity, QueueSelector

from . import claim_sql
from .bookmarks import Bookmarks
from .clock import read
from .patterns import Patterns
from .settle import to_json
from .settle_sql import HELD, Move, moves_of, settling, waiting
from .statements import fetch

Row = tuple[Any, ...]


class Told(NamedTuple):
    """What the first row of a claim says of the statement as a whole."""

    held: set[int]
    any_paused: bool
    claimed_at: float
    dead_rows: float | None
    somebody_waits: bool


class Claimer:
    """Claims for one selector. What it remembers saves work; to lose it harms nothing."""

    def __init__(self, connection: BaseDatabaseWrapper, selector: QueueSelector) -> None:
        self._connection = connection
        self._patterns = Patterns(selector)
        self._bookmarks = Bookmarks(self._patterns.exact)
        self._any_paused = False
        #: Whether the last claim found nothing.
        self.idle = False
        #: Whether a job waits for a permit that the last settlement has ended.
        self.somebody_waits = False

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper, selector: QueueSelector) -> Claimer:
        """Return the connection's claimer for ``selector``."""
        known: dict[QueueSelector, Claimer]
        known = connection.__dict__.setdefault("steady_queue_claimers", {})
        if selector not in known:
            known[selector] = cls(connection, selector)
        return known[selector]

    def finds_any(self, process: ProcessIdentity) -> bool:
        """Say whether there is anything to claim, at a lower cost than to try."""
        values = {**_named(process), "limit": 1}
        # Who takes all has to look again when the last queue is resumed.
        pick = claim_sql.ANY_BY_RANK if self._patterns.takes_all else self._pick
        return bool(self._read(claim_sql.probe(pick), values))

    def exchange(
        self, outcomes: Sequence[Outcome], process: ProcessIdentity, limit: int
    ) -> tuple[set[int], list[ClaimedJob]]:
        """Settle ``outcomes`` and claim up to ``limit`` jobs."""
        values: dict[str, Any] = {**_named(process), "limit": limit}
        if outcomes:
            values["outcomes"] = to_json(outcomes)
        told, claims = self._claim(_statement(self._pick, moves_of(outcomes)), values)
        if self._patterns.takes_all and told.any_paused is not self._any_paused:
            # The statement was made for the other case, and has claimed nothing.
            self._any_paused = told.any_paused
            _, claims = self._claim(_statement(self._pick, frozenset()), values)
        self.idle = not claims
        self.somebody_waits = told.somebody_waits
        return told.held, claims

    @property
    def _by_rank(self) -> bool:
        return self._patterns.takes_all and not self._any_paused

    @property
    def _pick(self) -> str:
        if self._by_rank:
            return claim_sql.BY_RANK
        if self._patterns.takes_all:
            return claim_sql.BY_PATTERN_WHILE_PAUSED
        return claim_sql.BY_PATTERN if self._patterns.exact is None else claim_sql.BY_NAME

    def _claim(self, statement: str, values: dict[str, Any]) -> tuple[Told, list[ClaimedJob]]:
        values["asks"] = self._bookmarks.asks
        told, *rows = self._read(statement, values)
        about = _told(told)
        claims = self._patterns.in_order(_claims(rows, about.claimed_at), self._by_rank)
        if about.dead_rows is not None:
            self._bookmarks.answer(about.dead_rows)
        if not self._connection.in_atomic_block:  # What is rolled back is behind no bookmark.
            self._bookmarks.move(claims)
        return about, claims

    def _read(self, statement: str, values: dict[str, Any]) -> list[Row]:
        whole = self._bookmarks.looks_at_all
        values |= self._bookmarks.spans(whole) | self._patterns.ranges
        began = time.monotonic()
        rows = fetch(self._connection, statement, values)
        if whole:
            self._bookmarks.looked_at_all(time.monotonic() - began)
        return rows


def _named(process: ProcessIdentity) -> dict[str, Any]:
    return {"process_id": process.id, "process_name": process.name}


@cache
def _statement(pick: str, moves: frozenset[Move]) -> str:
    if Move.UNPERMITTED in moves:
        pick = claim_sql.unless(waiting(moves), pick)
    taking = claim_sql.TAKE.format(pick=pick)
    if not moves:
        return f"WITH {taking} {claim_sql.TELL.format(held='NULL::text', waits='false')}"
    tell = claim_sql.TELL.format(held=HELD, waits=waiting(moves))
    return f"WITH {settling(moves)}, {taking} {tell}"


def _told(row: Row) -> Told:
    held, paused = row[6], row[7]
    told = set(json.loads(held)) if held else set()
    return Told(told, paused > 0, row[11], row[12], row[13] is not None)


def _claims(rows: Sequence[Row], claimed_at: float) -> list[ClaimedJob]:
    present = read(claimed_at)
    return [
        ClaimedJob._make(
            (
                *row[:11],
                read(row[11], present),
                None if row[12] is None else read(row[12], present),
                present,
                row[13],
            )
        )
        for row in rows
    ]
