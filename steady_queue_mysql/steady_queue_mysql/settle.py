"""Ending claims: one batch, in which every statement is fenced by the claims that still exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

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

from .batches import Result, Statement
from .claim import Claim, run_in_claim
from .clock import NOW_SQL, microseconds, to_text
from .inline_tables import Value, chunks, text_length, with_table
from .permits import admitting, create
from .semaphores import counting_few, free, known_by, lock
from .transactions import Transaction, run_in_transaction

# By job and token: a claim that is no longer held matches nothing, in any of the statements.
HELD = f"""
FROM {{given}} STRAIGHT_JOIN {tables.CLAIMED} c FORCE INDEX (PRIMARY)
     ON c.job_id = given.id AND c.token = given.token
     STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY) ON j.id = given.id"""
FENCE = ("id", "token")

LOCK_HELD = f"SELECT given.id {HELD} FOR UPDATE"

UPDATED = (*FENCE, "attempts", "worker_ids", "errors", "return_value", "started_at",
             "last_attempted_at", "completed")  # fmt: skip
UPDATE_JOBS = f"""
UPDATE {HELD.replace("FROM", "", 1)}
SET j.attempts = given.attempts, j.token = given.token, j.worker_ids = given.worker_ids,
    j.errors = given.errors, j.return_value = given.return_value,
    j.started_at = given.started_at, j.last_attempted_at = given.last_attempted_at,
    j.finished_at = IF(given.completed, {NOW_SQL}, NULL)"""
DELETE_JOBS = f"DELETE j {HELD}"

MOVED = (*FENCE, "queue_name", "position")
MOVED_LIMITED = (*MOVED, "concurrency_key")
MOVED_SCHEDULED = (*MOVED_LIMITED, "delay")
MOVED_FAILED = (*FENCE, "exception_class", "message", "fingerprint")
HEIRS = (*FENCE, "heir", "heir_token")
# An heir that has a permit already takes no other.
PASS_PERMITS = f"""
UPDATE {HELD.replace("FROM", "", 1)}
       STRAIGHT_JOIN {tables.CLAIMED} h FORCE INDEX (PRIMARY)
       ON h.job_id = given.heir AND h.token = given.heir_token
       STRAIGHT_JOIN {tables.PERMITS} p FORCE INDEX (PRIMARY) ON p.job_id = given.id
       LEFT JOIN {tables.PERMITS} other FORCE INDEX (PRIMARY) ON other.job_id = given.heir
SET p.job_id = given.heir WHERE other.job_id IS NULL"""
ENDING_PERMITS = f"""
SELECT p.`key` {HELD} STRAIGHT_JOIN {tables.PERMITS} p FORCE INDEX (PRIMARY)
ON p.job_id = given.id FOR UPDATE"""
END_PERMITS = f"""
DELETE p {HELD} STRAIGHT_JOIN {tables.PERMITS} p FORCE INDEX (PRIMARY) ON p.job_id = given.id"""
HAS_PERMIT = f"EXISTS (SELECT 1 FROM {tables.PERMITS} p WHERE p.job_id = given.id)"
# Replaces a stray row of the same job, which only manual edits can have left.
INSERT_READY = f"""
REPLACE INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at, turn)
SELECT given.id, given.queue_name, given.position, given.token, {NOW_SQL}, given.id {HELD}"""
INSERT_SCHEDULED = f"""
REPLACE INTO {tables.SCHEDULED}
        (job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key)
SELECT given.id, given.queue_name, given.position, given.token, {NOW_SQL},
       {NOW_SQL} + INTERVAL given.delay MICROSECOND, given.concurrency_key {HELD}"""
INSERT_BLOCKED = f"""
REPLACE INTO {tables.BLOCKED} (job_id, queue_name, `rank`, token, created_at, concurrency_key)
SELECT given.id, given.queue_name, given.position, given.token, {NOW_SQL}, given.concurrency_key
{HELD} WHERE NOT {HAS_PERMIT}"""
INSERT_PERMITTED = f"{INSERT_READY} WHERE {HAS_PERMIT}"
INSERT_FAILED = f"""
REPLACE INTO {tables.FAILED} (job_id, created_at, exception_class, message, fingerprint)
SELECT given.id, {NOW_SQL}, given.exception_class, given.message, given.fingerprint {HELD}"""

# Without a join to the job: the claim of a job that was deleted by hand ends here too.
END_CLAIMS = f"""
DELETE c FROM {{given}} STRAIGHT_JOIN {tables.CLAIMED} c FORCE INDEX (PRIMARY)
ON c.job_id = given.id AND c.token = given.token"""


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    if not outcomes:
        return set()
    keys = limited_keys(outcomes)

    def work(transaction: Transaction) -> set[int]:
        if not keys:
            return _held(transaction.execute(settlement(outcomes), last=True), outcomes)
        held, admission = _settle_limited(transaction, outcomes, keys)
        transaction.execute(admission, last=True)
        return held

    return run_in_transaction(connection, work)


def settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    keys = limited_keys(outcomes)

    def work(transaction: Transaction) -> tuple[set[int], list[ClaimedJob]]:
        claim = Claim(transaction, process, selector, limit)
        if not keys:
            results, claimed = claim.run(settlement(outcomes))
            return _held(results, outcomes), claimed
        held, admission = _settle_limited(transaction, outcomes, keys)
        return held, claim.run(admission)[1]

    return run_in_claim(connection, work)


def _settle_limited(
    transaction: Transaction, outcomes: Sequence[Outcome], keys: set[str]
) -> tuple[set[int], list[Statement]]:
    """End claims and their permits; return which were held, and statements that admit others."""
    settling = settlement(outcomes)
    locked, *results, counted = transaction.execute(
        [lock(keys), *settling, counting_few(transaction, keys)]
    )
    known = known_by(locked)
    left = free(known, counted, _ended_permits(settling, results))
    left |= create(transaction, keys - known.keys())
    return _held(results, outcomes), admitting(transaction, left).statements


def _ended_permits(settling: Sequence[Statement], results: Sequence[Result]) -> Counter[str]:
    """Return how many permits of each key have ended."""
    start = ENDING_PERMITS.partition("{given}")[0]
    return Counter(
        str(key)
        for statement, result in zip(settling, results, strict=True)
        if statement.sql.startswith(start)
        for (key,) in result.rows
    )


def settlement(outcomes: Sequence[Outcome]) -> list[Statement]:
    """Return the statements that end claims; the first ones select those that were held."""
    # In the order of the jobs, so that two settlements of the same claims wait for each other.
    ordered = sorted(outcomes, key=lambda outcome: outcome.job_id)
    fences = [(outcome.job_id, outcome.token) for outcome in ordered]
    permits = [(outcome.job_id, outcome.token) for outcome in ordered if outcome.ends_permit]
    heirs = [
        (outcome.job_id, outcome.token, *outcome.heir)
        for outcome in ordered
        if outcome.ends_permit and outcome.heir is not None and outcome.heir not in fences
    ]
    return [
        *_for_rows(LOCK_HELD, FENCE, fences),
        *_for_rows(PASS_PERMITS, HEIRS, heirs),
        *_for_rows(ENDING_PERMITS, FENCE, permits),
        *_for_rows(END_PERMITS, FENCE, permits),
        *_job_changes(ordered),
        *_moves(ordered),
        *_for_rows(END_CLAIMS, FENCE, fences),
    ]


def _held(results: Sequence[Result], outcomes: Sequence[Outcome]) -> set[int]:
    first = sum(1 for _ in chunks(outcomes))
    return {int(job_id) for result in results[:first] for (job_id,) in result.rows}


def _job_changes(outcomes: Sequence[Outcome]) -> list[Statement]:
    """Write the ends of attempts to the rows of their jobs."""
    updated: list[Sequence[Value]] = [
        (outcome.job_id, outcome.token, outcome.attempts, outcome.worker_ids, outcome.errors,
         outcome.return_value, _text(outcome.started_at), _text(outcome.last_attempted_at),
         outcome.completes_job)
        for outcome in outcomes
        if outcome.updates_job
    ]  # fmt: skip
    deleted = [(outcome.job_id, outcome.token) for outcome in outcomes if outcome.deletes_job]
    return [*_for_rows(UPDATE_JOBS, UPDATED, updated), *_for_rows(DELETE_JOBS, FENCE, deleted)]


def _moves(outcomes: Sequence[Outcome]) -> list[Statement]:
    """Insert the execution rows that jobs move to."""
    rows: dict[Destination, list[Sequence[Value]]] = {each: [] for each in Destination}
    for outcome in outcomes:
        rows[outcome.destination].append(_row(outcome))
    limited = rows[Destination.READY_OR_BLOCKED]
    return [
        *_for_rows(INSERT_READY, MOVED, rows[Destination.READY]),
        *_for_rows(INSERT_PERMITTED, MOVED_LIMITED, limited),
        *_for_rows(INSERT_BLOCKED, MOVED_LIMITED, limited),
        *_for_rows(INSERT_SCHEDULED, MOVED_SCHEDULED, rows[Destination.SCHEDULED]),
        *_for_rows(INSERT_FAILED, MOVED_FAILED, rows[Destination.FAILED]),
    ]


def _row(outcome: Outcome) -> Sequence[Value]:
    destination, fence = outcome.destination, (outcome.job_id, outcome.token)
    if destination is Destination.FAILED:
        return *fence, outcome.exception_class, outcome.message, outcome.fingerprint
    row = (*fence, outcome.queue_name, outcome.rank)
    if destination is Destination.SCHEDULED:
        return *row, outcome.concurrency_key, microseconds(outcome.delay)
    return (*row, outcome.concurrency_key) if outcome.is_limited else row


def _for_rows(sql: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> list[Statement]:
    return [with_table(sql, columns, chunk) for chunk in chunks(rows, text_length)]


def _text(time: datetime | None) -> str | None:
    return to_text(time) if time else None
