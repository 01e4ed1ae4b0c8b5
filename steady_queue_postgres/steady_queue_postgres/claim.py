"""Claims ready jobs: one statement, alone or together with the settlement of earlier claims."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, Outcome, ProcessIdentity, QueueSelector, portable

from . import claim_sql
from .clock import read
from .permits import admit_locked, create, lock
from .prepared import PreparedStatements, fetch
from .queue_patterns import QueuePatterns
from .scan_position import InTheWay, columns, take_note
from .settle import any_is_blocked, any_returns_to_ready, limited_keys, settle, to_json
from .settle_sql import HELD, Move, moves_of, settling, waiting
from .transactions import planned_transaction

Row = tuple[Any, ...]


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    if limit <= 0:
        return []
    claimer = Claimer.of(connection, selector)
    # Where the claim has to be planned anew, it costs more than a look.
    if (
        claimer.looks_first
        and PreparedStatements.of(connection) is None
        and not claimer.finds_any(process)
    ):
        return []
    return claimer.exchange((), process, limit)[1]


def settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    if not outcomes or limit <= 0:
        return settle(connection, outcomes), claim(connection, process, selector, limit)
    keys = limited_keys(outcomes)
    if any_returns_to_ready(outcomes) or (keys and any_is_blocked(outcomes)):
        # A statement does not see what it has inserted itself.
        with planned_transaction(connection):
            held = settle(connection, outcomes)
            return held, claim(connection, process, selector, limit)
    claimer = Claimer.of(connection, selector)
    if not keys:
        return claimer.exchange(outcomes, process, limit)
    with planned_transaction(connection):
        missing = keys - lock(connection, keys)
        held, claims = claimer.exchange(outcomes, process, limit)
        if claimer.somebody_waits:
            # Then nothing was claimed: who is let in may come before all that are ready.
            create(connection, missing)
            admit_locked(connection, keys)
            claims = claim(connection, process, selector, limit)
    return held, claims


class Told(NamedTuple):
    """What the first row of a claim says of the statement as a whole."""

    held: set[int]
    paused_queues: int
    claimed_at: float
    #: ``None``: was not asked for.
    in_the_way: InTheWay | None
    somebody_waits: bool


class Claimer:
    """Claims for one selector. What it remembers saves work; to lose it harms nothing."""

    def __init__(self, connection: BaseDatabaseWrapper, selector: QueueSelector) -> None:
        self._connection = connection
        self._patterns = QueuePatterns(selector)
        self._bookmarks = portable.Bookmarks(self._patterns.exact)
        self._idle = False
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

    @property
    def looks_first(self) -> bool:
        """Whether the last claim found nothing, and the next one has nothing to ask besides."""
        return self._idle and not self._bookmarks.asks

    def finds_any(self, process: ProcessIdentity) -> bool:
        """Say whether there is anything to claim, at a lower cost than to try."""
        bookmarks, looked_at_all = self._bookmarks, self._bookmarks.looks_at_all
        values = {**_named(process), "limit": 1}
        [(found, paused_queues)] = self._read(claim_sql.probe(self._pick), values)
        if bookmarks.note_pauses(paused_queues):
            return True
        if found and looked_at_all:
            # It may lie behind the bookmark, where the claim that follows has to find it.
            bookmarks.look_at_all()
        elif not found and not self._connection.in_atomic_block:
            bookmarks.move((), found_all=True)
        return bool(found)

    def exchange(
        self, outcomes: Sequence[Outcome], process: ProcessIdentity, limit: int
    ) -> tuple[set[int], list[ClaimedJob]]:
        """Settle ``outcomes`` and claim up to ``limit`` jobs."""
        values: dict[str, Any] = {**_named(process), "limit": limit}
        if outcomes:
            values["outcomes"] = to_json(outcomes)
        told, claims = self._claim(_statement(self._pick, moves_of(outcomes)), values)
        self._idle = not claims
        self.somebody_waits = told.somebody_waits
        return told.held, claims

    @property
    def _pick(self) -> str:
        if self._patterns.takes_all:
            return claim_sql.BY_RANK
        return claim_sql.BY_PATTERN if self._patterns.exact is None else claim_sql.BY_NAME

    def _claim(self, statement: str, values: dict[str, Any]) -> tuple[Told, list[ClaimedJob]]:
        values["asks"] = self._bookmarks.asks
        told, *rows = self._read(statement, values)
        about = _told(told)
        claims = self._patterns.in_order(_claims(rows, about.claimed_at))
        if not self._connection.in_atomic_block:  # What is rolled back is behind no bookmark.
            found = [(claim.queue_name, claim.rank, claim.job_id) for claim in claims]
            self._bookmarks.move(found, found_all=len(claims) < values["limit"])
        if about.in_the_way is not None:
            take_note(self._bookmarks, about.in_the_way)
        self._bookmarks.note_pauses(about.paused_queues)
        return about, claims

    def _read(self, statement: str, values: dict[str, Any]) -> list[Row]:
        whole = self._bookmarks.looks_at_all
        values |= columns(self._bookmarks.spans(whole)) | self._patterns.ranges
        began = time.monotonic()
        if whole and self._bookmarks.passes_ranks:
            newest = fetch(self._connection, claim_sql.NEWEST_BY_RANK, {})
            self._bookmarks.note_newest((rank, job_id) for rank, job_id in newest)
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
    held, of_paused, dead = row[6], row[1], row[12]
    told = set(json.loads(held)) if held else set()
    in_the_way = None if dead is None else InTheWay(dead, of_paused)
    return Told(told, row[7], row[11], in_the_way, row[13] is not None)


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
