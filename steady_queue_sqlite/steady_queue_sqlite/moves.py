"""Claiming, settling and dispatching under the one write lock."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import on_commit

from steady_queue_core.dialects import (
    ClaimedJob,
    Dispatched,
    Ending,
    Outcome,
    ProcessIdentity,
    QueueSelector,
    portable,
    tables,
)

from .clock import NOW_SQL, from_text, read, to_text
from .enqueue import INSERT_READY, INSERT_SCHEDULED, PRESENT, later
from .listing import list_queues
from .locking import transaction
from .permits import INSERT_BLOCKED, admit_by, discard_refused, end_permits, with_permit

# Read without the write lock, so that idle workers disturb nobody.
ANY_READY = f"SELECT 1 FROM {tables.READY} LIMIT 1"
ANY_DUE = f"SELECT 1 FROM {tables.SCHEDULED} WHERE due_at <= {NOW_SQL} LIMIT 1"

REGISTERED = f"SELECT 1 FROM {tables.PROCESSES} WHERE id = %s AND name = %s"
PAUSED = f"SELECT queue_name FROM {tables.PAUSES}"

# The first column says whether the row may be claimed. A stray one, whose job is gone, has ended or
# is running, ends here. SQLite stores any type in any column: numbers are made so.
PICK = f"""
SELECT j.id IS NOT NULL AND j.finished_at IS NULL AND c.job_id IS NULL,
       r.job_id, r.token, r.queue_name, CAST(r."rank" AS INTEGER), j.task_path,
       j.backend_name, j.arguments, CAST(j.attempts AS INTEGER), CAST(j.max_attempts AS INTEGER),
       j.worker_ids, j.errors, j.enqueued_at, j.started_at, j.concurrency_key
FROM {tables.READY} r LEFT JOIN {tables.JOBS} j ON j.id = r.job_id
     LEFT JOIN {tables.CLAIMED} c ON c.job_id = r.job_id
{{where}} ORDER BY r."rank", r.job_id LIMIT %s"""
PICK_ANY = PICK.format(where="")
PICK_QUEUE = PICK.format(where="WHERE r.queue_name = %s")
PICK_SPAN = PICK.format(
    where=f"""
WHERE (r."rank", r.job_id) >= (%s, %s) AND r."rank" < %s AND r.queue_name NOT IN ({PAUSED})"""
)

MANY_OF_PAUSED = f"""
SELECT count(*) FROM (SELECT 1 FROM {tables.READY} WHERE queue_name IN ({PAUSED})
                      LIMIT {portable.MANY_PAUSED})"""
# A walk over the index, as for the names of queues.
NEWEST_BY_RANK = f"""
WITH RECURSIVE step("rank") AS (
  SELECT min("rank") FROM {tables.READY}
  UNION ALL
  SELECT (SELECT min("rank") FROM {tables.READY} WHERE "rank" > step."rank")
  FROM step WHERE step."rank" IS NOT NULL)
SELECT "rank", (SELECT max(job_id) FROM {tables.READY} r WHERE r."rank" = step."rank")
FROM step WHERE "rank" <= 32767"""

DELETE_READY = f"DELETE FROM {tables.READY} WHERE job_id = %s"
INSERT_CLAIMED = f"""
INSERT INTO {tables.CLAIMED} (job_id, queue_name, "rank", token, created_at, process_id)
VALUES (%s, %s, %s, %s, %s, %s)"""

HELD = f"""
SELECT c.job_id, c.token FROM json_each(%s) AS wanted
JOIN {tables.CLAIMED} c ON c.job_id = wanted.value JOIN {tables.JOBS} j ON j.id = c.job_id"""
DELETE_CLAIMED = f"DELETE FROM {tables.CLAIMED} WHERE job_id = %s AND token = %s"
END_JOB = f"""
UPDATE {tables.JOBS} SET attempts = %s, token = %s, worker_ids = %s, errors = %s,
       return_value = %s, started_at = %s, last_attempted_at = %s, finished_at = %s
WHERE id = %s"""
DELETE_JOB = f"DELETE FROM {tables.JOBS} WHERE id = %s"
INSERT_FAILED = f"""
INSERT OR REPLACE INTO {tables.FAILED} (job_id, created_at, exception_class, message)
VALUES (%s, %s, %s, %s)"""

PICK_DUE = f"""
SELECT job_id, queue_name, "rank", token, concurrency_key FROM {tables.SCHEDULED}
WHERE due_at <= %s ORDER BY due_at, "rank", job_id LIMIT %s"""
DELETE_SCHEDULED = f"DELETE FROM {tables.SCHEDULED} WHERE job_id = %s"
NEXT_DUE = f"SELECT min(due_at) FROM {tables.SCHEDULED}"


#: Until when a row waits that has no instant in it: somebody has damaged it.
UNKNOWN = timedelta(days=1)


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    with connection.cursor() as cursor:
        cursor.execute(ANY_READY)
        if limit <= 0 or cursor.fetchone() is None:
            return []
        with transaction(connection):
            return _claim(connection, cursor, process, selector, limit)


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    with transaction(connection), connection.cursor() as cursor:
        return _settle(cursor, outcomes)


def settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    with transaction(connection), connection.cursor() as cursor:
        held = _settle(cursor, outcomes)
        return held, _claim(connection, cursor, process, selector, limit)


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    with connection.cursor() as cursor:
        cursor.execute(ANY_DUE)
        moved = 0
        if cursor.fetchone() is not None:
            with transaction(connection):
                moved = _dispatch(cursor, limit)
        cursor.execute(NEXT_DUE)
        next_due = cursor.fetchone()[0]
        if next_due is None:
            return Dispatched(moved, None)
        present = from_text(_present(cursor))
    waits = read(next_due, present + UNKNOWN) - present
    return Dispatched(moved, max(0.0, waits.total_seconds()))


def _claim(
    connection: BaseDatabaseWrapper,
    cursor: Any,
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> list[ClaimedJob]:
    cursor.execute(REGISTERED, process)
    if cursor.fetchone() is None:
        return []
    cursor.execute(PAUSED)
    paused = frozenset(name for (name,) in cursor.fetchall())
    if not selector.takes_all:
        names = selector.matching(lambda prefix: list_queues(connection, prefix), paused)
        picked = _pick_by_queue(cursor, names, limit)
    elif paused:
        picked = _pick_beside(paused, connection, cursor, limit)
    else:
        cursor.execute(PICK_ANY, [limit])
        picked = cursor.fetchall()
    if not picked:
        return []
    present_text = _present(cursor)
    taken = [
        (job_id, portable.next_token(token), *row)
        for may_be, job_id, token, *row in picked
        if may_be
    ]
    cursor.executemany(DELETE_READY, [row[1:2] for row in picked])
    cursor.executemany(
        INSERT_CLAIMED,
        [(job_id, queue, rank, token, present_text, process.id)
         for job_id, token, queue, rank, *_ in taken],
    )  # fmt: skip
    present = from_text(present_text)
    return [
        ClaimedJob._make(
            (
                *row[:11],
                read(row[11], present),
                row[12] and read(row[12], present),
                present,
                row[13],
            )
        )
        for row in taken
    ]


def _pick_beside(
    paused: frozenset[str], connection: BaseDatabaseWrapper, cursor: Any, limit: int
) -> list[tuple[Any, ...]]:
    """Pick by rank, over all queues but the paused ones."""
    bookmarks = portable.Bookmarks.of(connection)
    bookmarks.note_pauses(paused)
    if bookmarks.asks:
        cursor.execute(MANY_OF_PAUSED)
        bookmarks.answer(cursor.fetchone()[0])
    whole, began = bookmarks.looks_at_all, time.monotonic()
    if whole and bookmarks.passes_ranks:
        cursor.execute(NEWEST_BY_RANK)
        bookmarks.note_newest(cursor.fetchall())
    picked: list[tuple[Any, ...]] = []
    for span in bookmarks.spans(whole):
        cursor.execute(PICK_SPAN, [span.rank, span.job_id, span.end, limit - len(picked)])
        picked += cursor.fetchall()
        if len(picked) >= limit:
            break
    if whole:
        bookmarks.looked_at_all(time.monotonic() - began)
    found = [(queue, rank, job_id) for _, job_id, _, queue, rank, *_ in picked]
    # What is rolled back is behind no bookmark.
    on_commit(lambda: bookmarks.move(found, found_all=len(found) < limit), using=connection.alias)
    return picked


def _pick_by_queue(cursor: Any, queues: Iterable[str], limit: int) -> list[tuple[Any, ...]]:
    picked: list[tuple[Any, ...]] = []
    for queue in queues:
        cursor.execute(PICK_QUEUE, [queue, limit - len(picked)])
        picked += cursor.fetchall()
        if len(picked) >= limit:
            break
    return picked


def _settle(cursor: Any, outcomes: Sequence[Outcome]) -> set[int]:
    cursor.execute(HELD, [str([outcome.job_id for outcome in outcomes])])
    tokens = dict(cursor.fetchall())
    held = [outcome for outcome in outcomes if tokens.get(outcome.job_id) == outcome.token]
    # Of all, not of those held alone: a claim whose job somebody deleted ends here too.
    cursor.executemany(DELETE_CLAIMED, [(outcome.job_id, outcome.token) for outcome in outcomes])
    if held:
        present = _present(cursor)
        _complete(cursor, held, present)
        limited = [outcome for outcome in held if outcome.concurrency_key]
        ended = [outcome.job_id for outcome in limited if outcome.ending is not Ending.RELEASED]
        if ended:
            end_permits(cursor, ended)
        keeping = with_permit(cursor, [o.job_id for o in limited]) if limited else set()
        _place(cursor, held, present, keeping)
        admit_by(cursor, dict.fromkeys(o.concurrency_key for o in limited if o.concurrency_key))
    return {outcome.job_id for outcome in held}


def _attempted(outcome: Outcome) -> tuple[str | None, str | None]:
    """Return when the first and the last attempt began. Mostly they are one."""
    first, last = outcome.started_at, outcome.last_attempted_at
    text = to_text(first) if first else None
    if last is first:
        return text, text
    return text, to_text(last) if last else None


def _complete(cursor: Any, held: Sequence[Outcome], present: str) -> None:
    """Write what became of the jobs into their rows."""
    gone = [o for o in held if o.ending is Ending.FINISHED and not o.preserve]
    kept = [
        (
            outcome.attempts,
            outcome.token,
            outcome.worker_ids,
            outcome.errors,
            outcome.return_value,
            *_attempted(outcome),
            None if outcome.ending is Ending.RETRIED else present,
            outcome.job_id,
        )
        for outcome in held
        if outcome.ending is not Ending.RELEASED
        and (outcome.ending is not Ending.FINISHED or outcome.preserve)
    ]
    if kept:
        cursor.executemany(END_JOB, kept)
    if gone:
        cursor.executemany(DELETE_JOB, [(outcome.job_id,) for outcome in gone])


def _place(cursor: Any, held: Sequence[Outcome], present: str, keeping: set[int]) -> None:
    """Insert the execution rows that the jobs move to; ``keeping``: those that hold a permit."""
    ready, blocked, scheduled, failed = [], [], [], []
    for outcome in held:
        placed = (outcome.job_id, outcome.queue_name, outcome.rank, outcome.token, present)
        if outcome.ending is Ending.FAILED:
            failed.append((outcome.job_id, present, outcome.exception_class, outcome.message))
        elif outcome.ending is Ending.RETRIED and outcome.delay > 0:
            due = later(present, outcome.delay)
            scheduled.append((*placed, due, outcome.concurrency_key))
        elif outcome.ending is Ending.FINISHED:
            continue
        elif outcome.concurrency_key and outcome.job_id not in keeping:
            blocked.append((*placed, outcome.concurrency_key))
        else:
            ready.append(placed)
    for statement, rows in (
        (INSERT_READY, ready),
        (INSERT_BLOCKED, blocked),
        (INSERT_SCHEDULED, scheduled),
        (INSERT_FAILED, failed),
    ):
        if rows:
            cursor.executemany(statement, rows)


def _dispatch(cursor: Any, limit: int) -> int:
    present = _present(cursor)
    cursor.execute(PICK_DUE, [present, limit])
    due = cursor.fetchall()
    cursor.executemany(DELETE_SCHEDULED, [row[:1] for row in due])
    placed = [((*row[:4], present), row[4]) for row in due]
    cursor.executemany(INSERT_READY, [row for row, key in placed if not key])
    limited = [(*row, key) for row, key in placed if key]
    if limited:
        cursor.executemany(INSERT_BLOCKED, limited)
        admit_by(cursor, {row[-1]: None for row in limited})
        discard_refused(cursor, [row[0] for row in limited])
    return len(due)


def _present(cursor: Any) -> str:
    cursor.execute(PRESENT)
    return str(cursor.fetchone()[0])
