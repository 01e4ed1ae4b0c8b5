"""Moving due jobs to ready, and the look at when the next one is due."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Dispatched, tables

from .clock import NOW_SQL
from .conversation import Conversation, converse
from .enqueue import INSERT_BLOCKED, INSERT_READY
from .literals import Raw, ids, insertion, length_of, portions
from .packets import Statement, send
from .permits import admit_joined, discarding_refused, lock

# Seconds until the earliest job is due, negative when it is. Of the index, so one row is read.
NEXT_DUE = Statement(
    f"SELECT TIMESTAMPDIFF(MICROSECOND, {NOW_SQL}, min(due_at)) / 1e6 FROM {tables.SCHEDULED}"
)

# In the order of the index, so that no more rows are locked than are taken.
PICK_DUE = f"""
SELECT job_id, queue_name, `rank`, token, concurrency_key
FROM {tables.SCHEDULED} FORCE INDEX (steady_queue_scheduled_due)
WHERE due_at <= {NOW_SQL} ORDER BY due_at, `rank`, job_id LIMIT {{}} FOR UPDATE SKIP LOCKED"""

DELETE_SCHEDULED = f"""
DELETE s FROM {{given}} STRAIGHT_JOIN {tables.SCHEDULED} s FORCE INDEX (PRIMARY)
ON s.job_id = given.id"""


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    waits = _until_next(connection)
    if waits is None or waits > 0:
        return Dispatched(0, waits)
    moved = (
        converse(connection, lambda conversation: _move(conversation, limit)) if limit > 0 else 0
    )
    waits = _until_next(connection)
    return Dispatched(moved, None if waits is None else max(0.0, waits))


def _move(conversation: Conversation, limit: int) -> int:
    [answer] = conversation.ask([Statement(PICK_DUE.format(int(limit)))])
    due: list[Any] = list(answer.rows)
    ready = [(*row[:4], Raw(NOW_SQL)) for row in due if row[4] is None]
    blocked = [(*row[:4], Raw(NOW_SQL), row[4]) for row in due if row[4] is not None]
    keys = {row[-1] for row in blocked}
    statements = [
        *([lock(keys)] if keys else []),
        *[insertion(INSERT_READY, some) for some in portions(ready)],
        *[insertion(INSERT_BLOCKED, some) for some in portions(blocked, length_of)],
        *ids(DELETE_SCHEDULED, [row[0] for row in due]),
    ]
    conversation.ask(statements, last=not blocked)
    if blocked:
        admit_joined(conversation, keys)
        conversation.ask(discarding_refused([row[0] for row in blocked]), last=True)
    return len(due)


def _until_next(connection: BaseDatabaseWrapper) -> float | None:
    seconds = send(connection, [NEXT_DUE])[0].rows[0][0]
    return None if seconds is None else float(seconds)
