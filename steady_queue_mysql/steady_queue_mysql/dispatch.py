"""Moving due jobs to ready, and finding out when the next one is due."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Dispatched, portable, tables

from .batches import Statement, execute_all
from .clock import NOW_SQL
from .enqueue import INSERT_BLOCKED, INSERT_READY
from .inline_tables import SQL, Value, chunks, insert_rows, text_length, with_ids
from .permits import admission_to, discarding_refused, finding_refused
from .semaphores import lock
from .transactions import Transaction, run_in_transaction
from .transactions import transaction as transaction_of_orm

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


class _MembersRefused(Exception):
    """Members of batches are to be discarded, in a transaction of the queue's own."""


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    wait = _until_next(connection)
    if wait is None or wait > 0:
        return Dispatched(0, wait)
    moved = _move(connection, limit) if limit > 0 else 0
    wait = _until_next(connection)
    return Dispatched(moved, None if wait is None else max(0.0, wait))


def _move(connection: BaseDatabaseWrapper, limit: int) -> int:
    """Move due jobs; return how many."""
    try:
        return run_in_transaction(connection, lambda transaction: _move_due(transaction, limit))
    except _MembersRefused:
        # Nothing was moved yet. Batches end in a transaction that Django knows of.
        with transaction_of_orm(connection):
            return _move_due(Transaction(connection), limit)


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
        _admit(transaction, keys, [job_id for job_id, *_, key in due if key is not None])
    return len(due)


def _admit(transaction: Transaction, keys: Collection[str], blocked: Collection[int]) -> None:
    """Admit jobs; discard those of ``blocked`` that find no permit and must not wait."""
    admission = admission_to(transaction, keys)
    finding = finding_refused(job_id for job_id in blocked if job_id not in admission.job_ids)
    results = transaction.execute([*admission.statements, *finding], last=not finding)
    found = results[len(admission.statements) :]
    if refused := {int(job_id): metadata for result in found for job_id, metadata in result.rows}:
        _discard(transaction, refused)


def _discard(transaction: Transaction, refused: Mapping[int, str | None]) -> None:
    """Delete jobs that must not wait, whose metadata are the values, and end those that are members
    of batches."""
    if not transaction.joined and portable.members_of(refused):
        raise _MembersRefused
    transaction.execute(discarding_refused(list(refused)), last=True)
    if transaction.joined:
        portable.end_discarded(transaction.connection, refused)


def _until_next(connection: BaseDatabaseWrapper) -> float | None:
    [result] = execute_all(connection, [NEXT_DUE])
    seconds = result.rows[0][0]
    return None if seconds is None else float(seconds)
