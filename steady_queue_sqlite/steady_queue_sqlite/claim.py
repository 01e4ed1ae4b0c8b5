"""Claiming ready jobs, under the one write lock."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import on_commit

from steady_queue_core.dialects import (
    CLAIM_COLUMNS,
    EXECUTION_COLUMNS,
    ClaimedJob,
    ProcessIdentity,
    QueueSelector,
    portable,
    tables,
)

from .clock import from_text, present, read
from .listing import AFTER_ALL, list_queues
from .transactions import transaction

# Read without the write lock, so that idle workers do not disturb anyone.
ANY_READY = f"SELECT 1 FROM {tables.READY} LIMIT 1"

REGISTERED = f"SELECT 1 FROM {tables.PROCESSES} WHERE id = %s AND name = %s"
PAUSED = f"SELECT queue_name FROM {tables.PAUSES}"

NUMBERS = ("rank", "token", "attempts", "max_attempts")


def _column(name: str) -> str:
    column = f'r."{name}"' if name in EXECUTION_COLUMNS else f'j."{name}"'
    # SQLite stores a value of any type in any column.
    return f"CAST({column} AS INTEGER)" if name in NUMBERS else column


# A stray ready row, whose job is gone, has ended or is running, cannot be claimed, and is deleted.
PICKED = ("is_claimable", "turn", *CLAIM_COLUMNS)
PICK = f"""
SELECT j.id IS NOT NULL AND j.finished_at IS NULL AND c.job_id IS NULL,
       CAST(r.{{turn}} AS REAL), {", ".join(map(_column, CLAIM_COLUMNS))}
FROM {tables.READY} r LEFT JOIN {tables.JOBS} j ON j.id = r.job_id
     LEFT JOIN {tables.CLAIMED} c ON c.job_id = r.job_id
{{where}} ORDER BY r."rank", r.{{turn}} LIMIT %s"""
PICK_ANY = PICK.format(where="", turn="turn")
PICK_QUEUE = PICK.format(where="WHERE r.queue_name = %s", turn="turn")
NOT_PAUSED = f"r.queue_name NOT IN ({PAUSED})"
# The plus keeps SQLite from reading the index of queues, and sorting.
NOT_EXCLUDED = "NOT (+r.queue_name >= %s AND +r.queue_name < %s)"
PICK_SPAN = PICK.format(
    where=f"""
WHERE (r."rank", r.turn) >= (%s, %s) AND r."rank" < %s AND {NOT_PAUSED}""",
    turn="turn",
)

# SQLite keeps the order of a CROSS JOIN; for IN, it may read all ready jobs.
MANY_OF_PAUSED = f"""
SELECT count(*) FROM (SELECT 1 FROM {tables.PAUSES} p CROSS JOIN {tables.READY} r
                      ON r.queue_name = p.queue_name LIMIT {portable.MANY_PAUSED})"""
MANY_OF_EXCLUDED = f"""
SELECT count(*) FROM (SELECT 1 FROM {tables.READY} WHERE queue_name >= %s AND queue_name < %s
                      LIMIT {portable.MANY_PAUSED})"""
# A walk over the index, as for the names of queues.
LAST_BY_RANK = f"""
WITH RECURSIVE step("rank") AS (
  SELECT min("rank") FROM {tables.READY}
  UNION ALL
  SELECT (SELECT min("rank") FROM {tables.READY} WHERE "rank" > step."rank")
  FROM step WHERE step."rank" IS NOT NULL)
SELECT "rank", (SELECT max(turn) FROM {tables.READY} r WHERE r."rank" = step."rank")
FROM step WHERE "rank" <= 32767"""

DELETE_READY = f"DELETE FROM {tables.READY} WHERE job_id = %s"
INSERT_CLAIMED = f"""
INSERT INTO {tables.CLAIMED} (job_id, queue_name, "rank", token, created_at, process_id)
VALUES (%s, %s, %s, %s, %s, %s)"""

Row = dict[str, Any]


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    with connection.cursor() as cursor:
        cursor.execute(ANY_READY)
        if limit <= 0 or cursor.fetchone() is None:
            return []
        with transaction(connection):
            return claim_locked(connection, cursor, process, selector, limit)


def claim_locked(
    connection: BaseDatabaseWrapper,
    cursor: Any,
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> list[ClaimedJob]:
    """Claim jobs in a transaction that holds the write lock."""
    cursor.execute(REGISTERED, process)
    if cursor.fetchone() is None:
        return []
    cursor.execute(PAUSED)
    paused = frozenset(name for (name,) in cursor.fetchall())
    if not selector.takes_all:
        names = selector.matching(lambda prefix: list_queues(connection, prefix), paused)
        picked = _pick_by_queue(cursor, names, limit)
    elif paused or selector.excluded:
        picked = _pick_around_paused(paused, selector, connection, cursor, limit)
    else:
        picked = _fetch(cursor, PICK_ANY, [limit])
    return _take(cursor, process, picked) if picked else []


def _take(cursor: Any, process: ProcessIdentity, picked: Sequence[Row]) -> list[ClaimedJob]:
    """Move ``picked`` rows from ready to claimed."""
    now = present(cursor)
    claimed_at = from_text(now)
    claims = [
        ClaimedJob.from_row(row | {"token": portable.next_token(row["token"])}, claimed_at, read)
        for row in picked
        if row["is_claimable"]
    ]
    cursor.executemany(DELETE_READY, [(row["job_id"],) for row in picked])
    cursor.executemany(
        INSERT_CLAIMED,
        [(job.job_id, job.queue_name, job.rank, job.token, now, process.id) for job in claims],
    )
    return claims


def _pick_around_paused(
    paused: frozenset[str],
    selector: QueueSelector,
    connection: BaseDatabaseWrapper,
    cursor: Any,
    limit: int,
) -> list[Row]:
    """Pick jobs by rank over all queues except those that are paused or excluded."""
    bookmarks = portable.Bookmarks.of(connection, selector.excluded)
    excluded = [(low, end or AFTER_ALL) for low, end in portable.excluded_ranges(selector)]
    pick = PICK_SPAN.replace(
        NOT_PAUSED, " AND ".join([NOT_PAUSED, *[NOT_EXCLUDED] * len(excluded)])
    )
    names = [name for each in excluded for name in each]
    bookmarks.note_pauses(paused)
    if bookmarks.asks:
        bookmarks.answer(_count_in_the_way(cursor, excluded))
    whole, began = bookmarks.looks_at_all, time.monotonic()
    if whole and bookmarks.passes_ranks:
        cursor.execute(LAST_BY_RANK)
        bookmarks.note_last(cursor.fetchall())
    picked: list[Row] = []
    for span in bookmarks.spans(whole):
        start, left = (span.rank, span.turn, span.end), limit - len(picked)
        picked += _fetch(cursor, pick, [*start, *names, left])
        if len(picked) >= limit:
            break
    if whole:
        bookmarks.looked_at_all(time.monotonic() - began)
    found = [(row["queue_name"], row["rank"], row["turn"]) for row in picked]
    # Only after the commit: jobs of a claim that is rolled back must not be skipped.
    on_commit(lambda: bookmarks.move(found, found_all=len(found) < limit), using=connection.alias)
    return picked


def _count_in_the_way(cursor: Any, excluded: Iterable[tuple[object, object]]) -> int:
    """Count the ready jobs of queues that are paused or excluded, up to a limit for each."""
    cursor.execute(MANY_OF_PAUSED)
    count: int = cursor.fetchone()[0]
    for names in excluded:
        cursor.execute(MANY_OF_EXCLUDED, names)
        count += cursor.fetchone()[0]
    return count


def _pick_by_queue(cursor: Any, queues: Iterable[str], limit: int) -> list[Row]:
    picked: list[Row] = []
    for queue in queues:
        picked += _fetch(cursor, PICK_QUEUE, [queue, limit - len(picked)])
        if len(picked) >= limit:
            break
    return picked


def _fetch(cursor: Any, statement: str, values: Sequence[object]) -> list[Row]:
    cursor.execute(statement, values)
    return [dict(zip(PICKED, row, strict=True)) for row in cursor.fetchall()]
