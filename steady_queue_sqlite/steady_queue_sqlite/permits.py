"""Permits of semaphores, under the one write lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Outcome, portable, tables

from .clock import NOW_SQL
from .transactions import transaction

INSERT_BLOCKED = f"""
INSERT OR REPLACE INTO {tables.BLOCKED}
       (job_id, queue_name, "rank", token, created_at, concurrency_key)
VALUES (%s, %s, %s, %s, %s, %s)"""

# SQLite stores a value of any type in any column.
LIMIT = 'CAST(s."limit" AS INTEGER)'
#: How many permits of a semaphore are left; less than none, if more are held than there should be.
FREE = f"""
CASE WHEN (SELECT count(*) FROM (SELECT 1 FROM {tables.PERMITS} p WHERE p.key = s.key
                                 LIMIT {portable.FEW_PERMITS + 1})) > {portable.FEW_PERMITS}
     THEN CAST(s.value AS INTEGER)
     ELSE {LIMIT} - (SELECT count(*) FROM {tables.PERMITS} p WHERE p.key = s.key) END"""
KNOWN = f"SELECT {LIMIT}, {FREE} FROM {tables.SEMAPHORES} s WHERE key = %s"
# A missing semaphore takes its limit from the first job that waits.
MISSING = f"""
SELECT (SELECT CAST(j.concurrency_limit AS INTEGER) FROM {tables.BLOCKED} b
        JOIN {tables.JOBS} j ON j.id = b.job_id
        WHERE b.concurrency_key = %s ORDER BY b."rank", b.job_id LIMIT 1),
       (SELECT count(*) FROM {tables.PERMITS} WHERE key = %s)"""
PICK_BLOCKED = f"""
SELECT job_id FROM {tables.BLOCKED} WHERE concurrency_key = %s
ORDER BY "rank", job_id LIMIT %s"""
INSERT_PERMIT = f"INSERT OR REPLACE INTO {tables.PERMITS} (job_id, key) VALUES (%s, %s)"
MAKE_READY = f"""
INSERT OR REPLACE INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
SELECT job_id, queue_name, "rank", token, {NOW_SQL}, job_id
FROM {tables.BLOCKED} WHERE job_id = %s"""
DELETE_BLOCKED = f"DELETE FROM {tables.BLOCKED} WHERE job_id = %s"
SET_SEMAPHORE = f"""
INSERT INTO {tables.SEMAPHORES} (key, value, "limit") VALUES (%s, %s, %s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, "limit" = excluded."limit" """

# An heir that has a permit already takes no other.
PASS_PERMIT = f"""
UPDATE OR IGNORE {tables.PERMITS} SET job_id = %s WHERE job_id = %s
       AND EXISTS (SELECT 1 FROM {tables.CLAIMED} WHERE job_id = %s AND token = %s)"""
# SQLite keeps the order of a CROSS JOIN; without it, or for IN, old statistics may let it read the
# whole table.
HELD_BY = f"""
SELECT p.job_id, p.key FROM json_each(%s) AS wanted
CROSS JOIN {tables.PERMITS} p ON p.job_id = wanted.value"""
END_PERMIT = f"DELETE FROM {tables.PERMITS} WHERE job_id = %s"
GIVE_BACK = f"UPDATE {tables.SEMAPHORES} SET value = value + %s WHERE key = %s"

# A job that has run before is kept: it has waited already, and its record must not be lost.
REFUSED = f"""
SELECT b.job_id, j.metadata FROM json_each(%s) AS wanted
CROSS JOIN {tables.BLOCKED} b ON b.job_id = wanted.value AND b.token < {portable.FIRST_TOKEN}
CROSS JOIN {tables.JOBS} j ON j.id = b.job_id AND j.concurrency_discards"""
DELETE_JOB = f"DELETE FROM {tables.JOBS} WHERE id = %s"


def admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    if not keys:
        return 0
    with transaction(connection), connection.cursor() as cursor:
        return admit_by(cursor, dict.fromkeys(keys))


def admit_by(cursor: Any, limits: Mapping[str, int | None]) -> int:
    """Admit blocked jobs up to these limits; ``None`` stands for the semaphore's own."""
    return sum(_admit(cursor, key, limit) for key, limit in limits.items())


def _admit(cursor: Any, key: str, new_limit: int | None) -> int:
    limit, left = _limit_and_free(cursor, key, new_limit)
    if limit is None:
        return 0
    admitted: list[tuple[int]] = []
    if left > 0:
        cursor.execute(PICK_BLOCKED, [key, left])
        admitted = cursor.fetchall()
    if admitted:
        cursor.executemany(INSERT_PERMIT, [(job_id, key) for (job_id,) in admitted])
        cursor.executemany(MAKE_READY, admitted)
        cursor.executemany(DELETE_BLOCKED, admitted)
    cursor.execute(SET_SEMAPHORE, [key, left - len(admitted), limit])
    return len(admitted)


def _limit_and_free(cursor: Any, key: str, new_limit: int | None) -> tuple[int | None, int]:
    """Return the limit of a key, if there is one, and how many permits it leaves."""
    cursor.execute(KNOWN, [key])
    if known := cursor.fetchone():
        limit, left = known
        return (limit, left) if new_limit is None else (new_limit, left + new_limit - limit)
    cursor.execute(MISSING, [key, key])
    limit_of_first, holders = cursor.fetchone()
    limit = limit_of_first if new_limit is None else new_limit
    return limit, 0 if limit is None else limit - holders


def pass_permits(cursor: Any, outcomes: Iterable[Outcome]) -> None:
    """Give the permits of jobs to their heirs whose claims are still held."""
    heirs = [(each.heir[0], each.job_id, *each.heir) for each in outcomes if each.heir is not None]
    if heirs:
        cursor.executemany(PASS_PERMIT, heirs)


def end_permits(cursor: Any, job_ids: Iterable[int]) -> None:
    if held := _held_by(cursor, job_ids):
        cursor.executemany(END_PERMIT, [(job_id,) for job_id in held])
        ended = Counter(held.values())
        cursor.executemany(GIVE_BACK, [(count, key) for key, count in ended.items()])


def with_permit(cursor: Any, job_ids: Sequence[int]) -> set[int]:
    """Return the ids of the jobs that hold a permit."""
    return set(_held_by(cursor, job_ids))


def _held_by(cursor: Any, job_ids: Iterable[int]) -> dict[int, str]:
    """Return the keys of the permits that these jobs hold."""
    cursor.execute(HELD_BY, [str(list(job_ids))])
    return dict(cursor.fetchall())


def discard_refused(cursor: Any, job_ids: Sequence[int]) -> dict[int, str | None]:
    """Delete jobs that are blocked but must not wait; return their metadata by their ids."""
    cursor.execute(REFUSED, [str(list(job_ids))])
    refused: dict[int, str | None] = dict(cursor.fetchall())
    keys = [(job_id,) for job_id in refused]
    cursor.executemany(DELETE_BLOCKED, keys)
    cursor.executemany(DELETE_JOB, keys)
    return refused
