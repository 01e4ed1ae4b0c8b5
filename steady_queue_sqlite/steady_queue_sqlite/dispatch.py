"""Moving due jobs to ready, under the one write lock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Dispatched, portable, tables

from .clock import NOW_SQL, from_text, present, read
from .enqueue import INSERT_READY
from .permits import INSERT_BLOCKED, admit_by, discard_refused
from .transactions import transaction

# Read without the write lock, so that idle dispatchers do not disturb anyone.
ANY_DUE = f"SELECT 1 FROM {tables.SCHEDULED} WHERE due_at <= {NOW_SQL} LIMIT 1"
PICK_DUE = f"""
SELECT job_id, queue_name, "rank", token, concurrency_key FROM {tables.SCHEDULED}
WHERE due_at <= %s ORDER BY due_at, "rank", job_id LIMIT %s"""
DELETE_SCHEDULED = f"DELETE FROM {tables.SCHEDULED} WHERE job_id = %s"
NEXT_DUE = f"SELECT min(due_at) FROM {tables.SCHEDULED}"

#: How long to wait for a row whose due time cannot be read, after manual edits.
UNREADABLE = timedelta(days=1)


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    with connection.cursor() as cursor:
        cursor.execute(ANY_DUE)
        moved = 0
        if cursor.fetchone() is not None:
            with transaction(connection):
                moved = _dispatch(connection, cursor, limit)
        cursor.execute(NEXT_DUE)
        next_due = cursor.fetchone()[0]
        if next_due is None:
            return Dispatched(moved, None)
        now = from_text(present(cursor))
    wait = read(next_due, now + UNREADABLE) - now
    return Dispatched(moved, max(0.0, wait.total_seconds()))


def _dispatch(connection: BaseDatabaseWrapper, cursor: Any, limit: int) -> int:
    now = present(cursor)
    cursor.execute(PICK_DUE, [now, limit])
    due = cursor.fetchall()
    cursor.executemany(DELETE_SCHEDULED, [(job_id,) for job_id, *_ in due])
    ready, blocked = [], []
    for job_id, queue_name, rank, token, key in due:
        row = (job_id, queue_name, rank, token, now)
        if key is None:
            ready.append((*row, job_id))
        else:
            blocked.append((*row, key))
    cursor.executemany(INSERT_READY, ready)
    if blocked:
        cursor.executemany(INSERT_BLOCKED, blocked)
        admit_by(cursor, {key: None for *_, key in blocked})
        refused = discard_refused(cursor, [job_id for job_id, *_ in blocked])
        portable.end_discarded(connection, refused)
    return len(due)
