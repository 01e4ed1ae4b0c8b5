"""Permits of semaphores: who takes or ends permits of a key locks its semaphore first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables

from .clock import NOW_SQL
from .conversation import Conversation, converse
from .literals import ids, portions
from .packets import Answer, Statement
from .server import Server, server_of

# In the order of the index, which is that of all who lock several.
LOCK = f"""
SELECT `key`, `limit` FROM {tables.SEMAPHORES} FORCE INDEX (PRIMARY)
WHERE `key` IN ({{keys}}) ORDER BY `key` FOR UPDATE"""
SET_LIMITS = f"""
INSERT INTO {tables.SEMAPHORES} (`key`, value, `limit`) VALUES {{rows}} {{overwriting}}"""
# With a lock, to see what is newer than the snapshot of a caller's transaction.
COUNT = f"""
SELECT `key`, count(*) FROM {tables.PERMITS} FORCE INDEX (steady_queue_permits_key)
WHERE `key` IN ({{keys}}) GROUP BY `key` FOR UPDATE"""
FIRST_LIMIT = f"""
SELECT j.concurrency_limit FROM {tables.BLOCKED} b FORCE INDEX (steady_queue_blocked_release)
STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY) ON j.id = b.job_id
WHERE b.concurrency_key = %s ORDER BY b.`rank`, b.job_id LIMIT 1"""

PICK = f"""
SELECT job_id, concurrency_key FROM {tables.BLOCKED} FORCE INDEX (steady_queue_blocked_release)
WHERE concurrency_key = %s ORDER BY `rank`, job_id LIMIT {{limit}} FOR UPDATE"""
OF_BLOCKED = f"""
FROM {{given}} STRAIGHT_JOIN {tables.BLOCKED} b FORCE INDEX (PRIMARY) ON b.job_id = given.id"""
GIVE_PERMITS = f"""
REPLACE INTO {tables.PERMITS} (job_id, `key`) SELECT b.job_id, b.concurrency_key {OF_BLOCKED}"""
MAKE_READY = f"""
REPLACE INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at)
SELECT b.job_id, b.queue_name, b.`rank`, b.token, {NOW_SQL} {OF_BLOCKED}"""
UNBLOCK = f"DELETE b {OF_BLOCKED}"
SET_VALUES = f"""
UPDATE {tables.SEMAPHORES} FORCE INDEX (PRIMARY) SET value = CASE `key` {{cases}} END
WHERE `key` IN ({{keys}})"""

# A job that has run before has waited already, and what it left is not thrown away.
DISCARD_REFUSED = f"""
DELETE b, j {OF_BLOCKED} AND b.token = 0
STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY) ON j.id = given.id AND j.concurrency_discards"""


class Admission(NamedTuple):
    """Who is let in, and the statements that do it."""

    job_ids: frozenset[int]
    statements: list[Statement]


def admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    if not keys:
        return 0

    return converse(connection, lambda conversation: admit_joined(conversation, set(keys)))


def admit_joined(conversation: Conversation, keys: Collection[str]) -> int:
    """Do so as a part of ``conversation``."""
    [locked] = conversation.ask([lock(keys)])
    limits = limits_of(locked)
    limits |= create(conversation, set(keys) - limits.keys())
    if not limits:
        return 0
    [counted] = conversation.ask([counting(limits)])
    admission = admitting(conversation, limits, counted)
    conversation.ask(admission.statements)
    return len(admission.job_ids)


def create(conversation: Conversation, missing: Collection[str]) -> dict[str, int]:
    """Create semaphores that are not there, with the limits of the jobs that wait longest; return
    those."""
    if not missing:
        return {}
    keys = sorted(missing)
    answers = conversation.ask([Statement(FIRST_LIMIT, [key]) for key in keys])
    found = {
        key: int(answer.rows[0][0])
        for key, answer in zip(keys, answers, strict=True)
        if answer.rows and answer.rows[0][0] is not None
    }
    if found:
        conversation.ask([set_limits(server_of(conversation.connection), found)])
    return found


def lock(keys: Iterable[str]) -> Statement:
    """Return a statement that locks semaphores and gives ``limits_of`` them."""
    return _of_keys(LOCK, keys)


def limits_of(locked: Answer) -> dict[str, int]:
    return {str(key): int(limit) for key, limit in locked.rows}


def set_limits(server: Server, limits: Mapping[str, int]) -> Statement:
    """Return a statement that creates or changes semaphores, and locks them."""
    keys = sorted(limits)
    rows = ", ".join(f"(%s, 0, {int(limits[key])})" for key in keys)
    return Statement(SET_LIMITS.format(rows=rows, overwriting=server.overwriting("`limit`")), keys)


def counting(keys: Iterable[str]) -> Statement:
    """Return a statement that counts the permits that are held."""
    return _of_keys(COUNT, keys)


def admitting(conversation: Conversation, limits: Mapping[str, int], counted: Answer) -> Admission:
    """Choose whom to let in; the semaphores of ``limits`` are locked, their permits ``counted``."""
    left = dict(limits)
    for key, holders in counted.rows:
        if key in left:
            left[str(key)] -= int(holders)
    picks = [
        Statement(PICK.format(limit=number), [key]) for key, number in left.items() if number > 0
    ]
    chosen = [row for answer in (conversation.ask(picks) if picks else ()) for row in answer.rows]
    for _, key in chosen:
        left[str(key)] -= 1
    job_ids = [job_id for job_id, _ in chosen]
    statements = [each for sql in (GIVE_PERMITS, MAKE_READY, UNBLOCK) for each in ids(sql, job_ids)]
    return Admission(frozenset(job_ids), [*statements, *_set_values(left)])


def discarding_refused(job_ids: Sequence[int]) -> list[Statement]:
    """Return statements that delete those of the jobs that are blocked but are not to wait."""
    return ids(DISCARD_REFUSED, job_ids)


def _set_values(left: Mapping[str, int]) -> list[Statement]:
    statements = []
    for keys in portions(sorted(left), len):
        cases = " ".join(f"WHEN %s THEN {max(0, left[key])}" for key in keys)
        marks = ", ".join(["%s"] * len(keys))
        sql = SET_VALUES.replace("{cases}", cases).replace("{keys}", marks)
        statements.append(Statement(sql, [*keys, *keys]))
    return statements


def _of_keys(sql: str, keys: Iterable[str]) -> Statement:
    ordered = sorted(keys)
    return Statement(sql.replace("{keys}", ", ".join(["%s"] * len(ordered))), ordered)
