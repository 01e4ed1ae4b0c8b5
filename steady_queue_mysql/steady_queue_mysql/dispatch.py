"""Moving due jobs to ready, and finding out when the next one is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Dispatched, tables

from .batches import Statement, execute_all
from .clock import NOW_SQL
from .enqueue import INSERT_BLOCKED, INSERT_READY
from .inline_tables import SQL, Value, chunks, insert_rows, text_length, with_ids
from .permits import admit_joined, discarding_refused, lock
from .transactions import Transaction, run_in_transaction

# Seconds until the earliest job is due; negative if it is overdue. Reads one entry of the index.
NEXT_DUE = Statement(
    f"SELECT TIMESTAMPDIFF(MICROSECOND, {NOW_SQL}, min(due_at)) / 1e6 FROM {tables.SCHEDULED}"
)

# In the order of the index, so that no more rows are locked than are moved.
PICK_DUE = f"""
SELECT job_id, queue_name, `rank`, token, concurrency_key
FROM {tables.SCHEDULED} FORCE INDEX (steady_queue_scheduled_due)
WHERE due_at <= {NOW_SQL}
ORDER BY due_at, `rank`, job_id LIMIT {{limit}} FOR UPDATE SKIP LOCKED"""

DELETE_SCHEDULED = f"""
DELETE s FROM {{given}} STRAIGHT_JOIN {tables.SCHEDULED} s FORCE INDEX (PRIMARY)
ON s.job_id = given.id"""


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    wait = _until_next(connection)
    if wait is None or wait > 0:
        return Dispatched(0, wait)
    moved = _move(connection, limit) if limit > 0 else 0
    wait = _until_next(connection)
    return Dispatched(moved, None if wait is None else max(0.0, wait))


def _move(connection: BaseDatabaseWrapper, limit: int) -> int:
    """Move due jobs; return how many."""
    return run_in_transaction(connection, lambda transaction: _move_due(transaction, limit))


def _move_due(transaction: Transaction, limit: int) -> int:
    [due] = transaction.execute([Statement(PICK_DUE.format(limit=int(limit)))])
    return _moved(transaction, due.rows)


def _moved(transaction: Transaction, due: Sequence[tuple[Any, ...]]) -> int:
    """Move these rows; return how many."""
    ready: list[Sequence[Value]] = []
    blocked: list[Sequence[Value]] = []
    for job_id, queue_name, rank, token, key in due:
        row = (job_id, queue_name, rank, token, SQL(NOW_SQL))
        if key is None:
            ready.append((*row, job_id))
        else:
            blocked.append((*row, key))
    keys = {key for *_, key in due if key is not None}
    statements = [
        *([lock(keys)] if keys else []),
        *[insert_rows(INSERT_READY, chunk) for chunk in chunks(ready)],
        *[insert_rows(INSERT_BLOCKED, chunk) for chunk in chunks(blocked, text_length)],
        *with_ids(DELETE_SCHEDULED, [job_id for job_id, *_ in due]),
    ]
    transaction.execute(statements, last=not keys)
    if keys:
        admit_joined(transaction, keys)
        limited = [job_id for job_id, *_, key in due if key is not None]
        transaction.execute(discarding_refused(limited), last=True)
    return len(due)


def _until_next(connection: BaseDatabaseWrapper) -> float | None:
    [result] = execute_all(connection, [NEXT_DUE])
    seconds = result.rows[0][0]
    return None if seconds is None else float(seconds)
