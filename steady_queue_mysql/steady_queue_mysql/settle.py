"""Ending claims: one packet, whose every statement is fenced by the claims that are still there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import (
    ClaimedJob,
    Ending,
    Outcome,
    ProcessIdentity,
    QueueSelector,
    tables,
)

from .claim import Claiming
from .clock import NOW_SQL, microseconds, to_text
from .conversation import Conversation, converse
from .literals import Value, length_of, portions, statement
from .packets import Answer, Statement
from .permits import admitting, counting, create, limits_of, lock

# By job and token: what is not held any more matches nothing, in this and all that follow.
HELD = f"""
FROM {{given}} STRAIGHT_JOIN {tables.CLAIMED} c FORCE INDEX (PRIMARY)
     ON c.job_id = given.id AND c.token = given.token
     STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY) ON j.id = given.id"""
FENCE = ("id", "token")

LOCK_HELD = f"SELECT given.id {HELD} FOR UPDATE"

COMPLETED = (*FENCE, "attempts", "worker_ids", "errors", "return_value", "started_at",
             "last_attempted_at", "ended")  # fmt: skip
COMPLETE = f"""
UPDATE {HELD.replace("FROM", "", 1)}
SET j.attempts = given.attempts, j.token = given.token, j.worker_ids = given.worker_ids,
    j.errors = given.errors, j.return_value = given.return_value,
    j.started_at = given.started_at, j.last_attempted_at = given.last_attempted_at,
    j.finished_at = IF(given.ended, {NOW_SQL}, NULL)"""
REMOVE = f"DELETE j {HELD}"

PLACED = (*FENCE, "queue_name", "position")
PLACED_LIMITED = (*PLACED, "concurrency_key")
END_PERMITS = f"""
DELETE p {HELD} STRAIGHT_JOIN {tables.PERMITS} p FORCE INDEX (PRIMARY) ON p.job_id = given.id"""
HAS_PERMIT = f"EXISTS (SELECT 1 FROM {tables.PERMITS} p WHERE p.job_id = given.id)"
# A stray row of the same job, which nobody but a stranger can have left, gives way.
PLACE_READY = f"""
REPLACE INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at)
SELECT given.id, given.queue_name, given.position, given.token, {NOW_SQL} {HELD}"""
PLACE_SCHEDULED = f"""
REPLACE INTO {tables.SCHEDULED}
        (job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key)
SELECT given.id, given.queue_name, given.position, given.token, {NOW_SQL},
       {NOW_SQL} + INTERVAL given.delay MICROSECOND, given.concurrency_key {HELD}"""
PLACE_BLOCKED = f"""
REPLACE INTO {tables.BLOCKED} (job_id, queue_name, `rank`, token, created_at, concurrency_key)
SELECT given.id, given.queue_name, given.position, given.token, {NOW_SQL}, given.concurrency_key
{HELD} WHERE NOT {HAS_PERMIT}"""
PLACE_PERMITTED = f"{PLACE_READY} WHERE {HAS_PERMIT}"
PLACE_FAILED = f"""
REPLACE INTO {tables.FAILED} (job_id, created_at, exception_class, message)
SELECT given.id, {NOW_SQL}, given.exception_class, given.message {HELD}"""

# Without a look at the job: a claim whose job somebody deleted ends here too.
END_CLAIMS = f"""
DELETE c FROM {{given}} STRAIGHT_JOIN {tables.CLAIMED} c FORCE INDEX (PRIMARY)
ON c.job_id = given.id AND c.token = given.token"""


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    if not outcomes:
        return set()

    def work(conversation: Conversation) -> set[int]:
        if not keys_of(outcomes):
            return _held(conversation.ask(settlement(outcomes), last=True), outcomes)
        held, admission = _settle_limited(conversation, outcomes)
        conversation.ask(admission, last=True)
        return held

    return converse(connection, work)


def settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    def work(conversation: Conversation) -> tuple[set[int], list[ClaimedJob]]:
        claiming = Claiming(conversation, process, selector, limit)
        if not keys_of(outcomes):
            answers, claimed = claiming.run(settlement(outcomes))
            return _held(answers, outcomes), claimed
        held, admission = _settle_limited(conversation, outcomes)
        return held, claiming.run(admission)[1]

    return converse(connection, work)


def _settle_limited(
    conversation: Conversation, outcomes: Sequence[Outcome]
) -> tuple[set[int], list[Statement]]:
    """End claims, and their permits; return which were held, and what lets in others."""
    keys = keys_of(outcomes)
    locked, *answers, counted = conversation.ask(
        [lock(keys), *settlement(outcomes), counting(keys)]
    )
    limits = limits_of(locked)
    limits |= create(conversation, keys - limits.keys())
    admission = admitting(conversation, limits, counted)
    return _held(answers, outcomes), admission.statements


def keys_of(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the keys of the permits that are held for the claims."""
    return {outcome.concurrency_key for outcome in outcomes if outcome.concurrency_key is not None}


def settlement(outcomes: Sequence[Outcome]) -> list[Statement]:
    """Return the statements that end claims; the first ones tell which were held."""
    # In the order of the jobs, so that two settlements of the same claims wait for each other.
    ordered = sorted(outcomes, key=lambda outcome: outcome.job_id)
    fences = [(outcome.job_id, outcome.token) for outcome in ordered]
    permits = [
        (outcome.job_id, outcome.token)
        for outcome in ordered
        if outcome.concurrency_key is not None and outcome.ending is not Ending.RELEASED
    ]
    return [
        *_for_rows(LOCK_HELD, FENCE, fences),
        *_for_rows(END_PERMITS, FENCE, permits),
        *_completions(ordered),
        *_placements(ordered),
        *_for_rows(END_CLAIMS, FENCE, fences),
    ]


def _held(answers: Sequence[Answer], outcomes: Sequence[Outcome]) -> set[int]:
    looks = sum(1 for _ in portions(outcomes))
    return {int(job_id) for answer in answers[:looks] for (job_id,) in answer.rows}


def _completions(outcomes: Sequence[Outcome]) -> list[Statement]:
    """Write what became of the jobs into their rows."""
    kept: list[Sequence[Value]] = []
    gone: list[Sequence[Value]] = []
    for outcome in outcomes:
        if outcome.ending is Ending.FINISHED and not outcome.preserve:
            gone.append((outcome.job_id, outcome.token))
        elif outcome.ending is not Ending.RELEASED:
            kept.append(
                (outcome.job_id, outcome.token, outcome.attempts, outcome.worker_ids,
                 outcome.errors, outcome.return_value, _text(outcome.started_at),
                 _text(outcome.last_attempted_at), outcome.ending is not Ending.RETRIED)
            )  # fmt: skip
    return [*_for_rows(COMPLETE, COMPLETED, kept), *_for_rows(REMOVE, FENCE, gone)]


def _placements(outcomes: Sequence[Outcome]) -> list[Statement]:
    """Insert the execution rows that the jobs move to."""
    ready: list[Sequence[Value]] = []
    limited: list[Sequence[Value]] = []
    scheduled: list[Sequence[Value]] = []
    failed: list[Sequence[Value]] = []
    for outcome in outcomes:
        placed = (outcome.job_id, outcome.token, outcome.queue_name, outcome.rank)
        if outcome.ending is Ending.FAILED:
            failed.append((*placed[:2], outcome.exception_class, outcome.message))
        elif outcome.ending is Ending.RETRIED and outcome.delay > 0:
            scheduled.append((*placed, outcome.concurrency_key, microseconds(outcome.delay)))
        elif outcome.ending is Ending.FINISHED:
            continue
        elif outcome.concurrency_key is not None:
            limited.append((*placed, outcome.concurrency_key))
        else:
            ready.append(placed)
    return [
        *_for_rows(PLACE_READY, PLACED, ready),
        *_for_rows(PLACE_PERMITTED, PLACED_LIMITED, limited),
        *_for_rows(PLACE_BLOCKED, PLACED_LIMITED, limited),
        *_for_rows(PLACE_SCHEDULED, (*PLACED_LIMITED, "delay"), scheduled),
        *_for_rows(PLACE_FAILED, (*FENCE, "exception_class", "message"), failed),
    ]


def _for_rows(sql: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> list[Statement]:
    return [statement(sql, columns, some) for some in portions(rows, length_of)]


def _text(instant: datetime | None) -> str | None:
    return to_text(instant) if instant else None
