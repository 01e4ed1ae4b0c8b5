"""Ending claims, under the one write lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import (
    ClaimedJob,
    Destination,
    Outcome,
    ProcessIdentity,
    QueueSelector,
    limited_keys,
    tables,
)

from .claim import claim_locked
from .clock import later, present, to_text
from .enqueue import INSERT_READY, INSERT_SCHEDULED
from .members import end_members, is_any_batch_at_its_end
from .permits import DELETE_JOB, INSERT_BLOCKED, admit_by, end_permits, pass_permits, with_permit
from .transactions import transaction

HELD = f"""
SELECT c.job_id, c.token FROM json_each(%s) AS wanted
CROSS JOIN {tables.CLAIMED} c ON c.job_id = wanted.value
CROSS JOIN {tables.JOBS} j ON j.id = c.job_id"""
DELETE_CLAIMED = f"DELETE FROM {tables.CLAIMED} WHERE job_id = %s AND token = %s"
UPDATE_JOB = f"""
UPDATE {tables.JOBS} SET attempts = %s, token = %s, worker_ids = %s, errors = %s,
       return_value = %s, started_at = %s, last_attempted_at = %s, finished_at = %s
WHERE id = %s"""
INSERT_FAILED = f"""
INSERT OR REPLACE INTO {tables.FAILED}
       (job_id, created_at, exception_class, message, fingerprint)
VALUES (%s, %s, %s, %s, %s)"""

INSERTS = {
    Destination.READY: INSERT_READY,
    Destination.READY_OR_BLOCKED: INSERT_BLOCKED,
    Destination.SCHEDULED: INSERT_SCHEDULED,
    Destination.FAILED: INSERT_FAILED,
}


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
        return held, claim_locked(connection, cursor, process, selector, limit)


def settle_members(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]] | None:
    with transaction(connection), connection.cursor() as cursor:
        ended = [outcome for outcome in outcomes if outcome.ends_member]
        if is_any_batch_at_its_end(cursor, ended):
            return None
        held = _settle(cursor, outcomes)
        end_members(cursor, [outcome for outcome in ended if outcome.job_id in held])
        return held, claim_locked(connection, cursor, process, selector, limit)


def _settle(cursor: Any, outcomes: Sequence[Outcome]) -> set[int]:
    cursor.execute(HELD, [str([outcome.job_id for outcome in outcomes])])
    tokens = dict(cursor.fetchall())
    held = [outcome for outcome in outcomes if tokens.get(outcome.job_id) == outcome.token]
    # All of them, not just those held: the claim of a job that was deleted by hand ends here too.
    cursor.executemany(DELETE_CLAIMED, [(outcome.job_id, outcome.token) for outcome in outcomes])
    if held:
        now = present(cursor)
        _write_attempts(cursor, held, now)
        if ended := [outcome for outcome in held if outcome.ends_permit]:
            pass_permits(cursor, ended)
            end_permits(cursor, [outcome.job_id for outcome in ended])
        _move(cursor, held, now)
        admit_by(cursor, dict.fromkeys(sorted(limited_keys(held))))
    return {outcome.job_id for outcome in held}


def _write_attempts(cursor: Any, held: Sequence[Outcome], now: str) -> None:
    """Write the ends of attempts to the rows of their jobs."""
    updated = [_row_of_attempt(outcome, now) for outcome in held if outcome.updates_job]
    deleted = [(outcome.job_id,) for outcome in held if outcome.deletes_job]
    if updated:
        cursor.executemany(UPDATE_JOB, updated)
    if deleted:
        cursor.executemany(DELETE_JOB, deleted)


def _row_of_attempt(outcome: Outcome, now: str) -> tuple[object, ...]:
    first, last = _attempted(outcome)
    # A task may start and end within a millisecond, which is all that SQLite's clock tells apart.
    ended_at = max(now, last or now) if outcome.completes_job else None
    return (
        outcome.attempts, outcome.token, outcome.worker_ids, outcome.errors, outcome.return_value,
        first, last, ended_at, outcome.job_id,
    )  # fmt: skip


def _attempted(outcome: Outcome) -> tuple[str | None, str | None]:
    """Return the starts of the first and the last attempt, which are mostly the same."""
    first, last = outcome.started_at, outcome.last_attempted_at
    text = to_text(first) if first else None
    if last is first:
        return text, text
    return text, to_text(last) if last else None


def _move(cursor: Any, held: Sequence[Outcome], now: str) -> None:
    """Insert the execution rows that jobs move to."""
    candidates = [o.job_id for o in held if o.destination is Destination.READY_OR_BLOCKED]
    permitted = with_permit(cursor, candidates) if candidates else set()
    rows: dict[Destination, list[tuple[object, ...]]] = {name: [] for name in INSERTS}
    for outcome in held:
        destination = outcome.destination
        if destination is Destination.NONE:
            continue
        if destination is Destination.READY_OR_BLOCKED and outcome.job_id in permitted:
            destination = Destination.READY
        rows[destination].append(_row(outcome, destination, now))
    for destination, statement in INSERTS.items():
        if rows[destination]:
            cursor.executemany(statement, rows[destination])


def _row(outcome: Outcome, destination: Destination, now: str) -> tuple[object, ...]:
    if destination is Destination.FAILED:
        error = outcome.exception_class, outcome.message, outcome.fingerprint
        return outcome.job_id, now, *error
    row = (outcome.job_id, outcome.queue_name, outcome.rank, outcome.token, now)
    if destination is Destination.SCHEDULED:
        return *row, later(now, outcome.delay), outcome.concurrency_key
    return (*row, outcome.job_id if destination is Destination.READY else outcome.concurrency_key)
