"""Permits of semaphores. The semaphore of a key is locked before its permits are changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable, tables

from .batches import Result, Statement
from .clock import NOW_SQL
from .inline_tables import with_ids
from .semaphores import (
    NEW,
    Known,
    counting,
    counting_few,
    counting_now,
    free,
    known_by,
    lock,
    set_limits,
    set_values,
)
from .server import server_of
from .transactions import Transaction, run_in_transaction

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
REPLACE INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at, turn)
SELECT b.job_id, b.queue_name, b.`rank`, b.token, {NOW_SQL}, b.job_id {OF_BLOCKED}"""
UNBLOCK = f"DELETE b {OF_BLOCKED}"

# A job that has run before is kept: it has waited already, and its record must not be lost.
OF_REFUSED = f"""{OF_BLOCKED} AND b.token < {portable.FIRST_TOKEN}
STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY) ON j.id = given.id AND j.concurrency_discards"""
FIND_REFUSED = f"SELECT j.id, j.metadata {OF_REFUSED} FOR UPDATE"
DISCARD_REFUSED = f"DELETE b, j {OF_REFUSED}"


class Admission(NamedTuple):
    """The jobs to admit, and the statements that admit them."""

    job_ids: frozenset[int]
    statements: list[Statement]


def admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    if not keys:
        return 0
    return run_in_transaction(connection, lambda transaction: admit_joined(transaction, set(keys)))


def admit_joined(transaction: Transaction, keys: Collection[str]) -> int:
    """Admit jobs within ``transaction``; return how many."""
    admission = admission_to(transaction, keys)
    if admission.statements:
        transaction.execute(admission.statements)
    return len(admission.job_ids)


def admission_to(transaction: Transaction, keys: Collection[str]) -> Admission:
    """Lock the semaphores of ``keys``, and choose the jobs to admit."""
    [locked] = transaction.execute([lock(keys)])
    known = known_by(locked)
    left = create(transaction, set(keys) - known.keys())
    if known:
        [counted] = transaction.execute([counting_few(transaction, known)])
        left |= free(known, counted)
    return admitting(transaction, left)


def create(transaction: Transaction, missing: Collection[str]) -> dict[str, int]:
    """Create missing semaphores with the limits of the jobs that wait longest; return their free
    permits."""
    if not missing:
        return {}
    keys = sorted(missing)
    results = transaction.execute([Statement(FIRST_LIMIT, [key]) for key in keys])
    found = {
        key: int(result.rows[0][0])
        for key, result in zip(keys, results, strict=True)
        if result.rows and result.rows[0][0] is not None
    }
    if not found:
        return {}
    creating = set_limits(server_of(transaction.connection), found)
    counted = transaction.execute([creating, counting_now(transaction, found)])[-1]
    return {str(key): found[key] - int(holders) for key, holders in counted.rows}


class Opened(NamedTuple):
    """What semaphores say that were locked for new jobs."""

    #: The free permits of those whose limit stays: nobody waits for them.
    free: dict[str, int]
    #: The limits of those that were missing. Permits may be there, after manual edits.
    new: dict[str, int]
    #: The others, with their new limits, by which the jobs that wait are admitted.
    changed: dict[str, Known]

    @classmethod
    def of(cls, result: Result, limits: Mapping[str, int]) -> Opened:
        rows = [(key, value, limit) for key, (value, limit) in known_by(result).items()]
        return cls(
            {key: value for key, value, limit in rows if value != NEW and limit == limits[key]},
            {key: limit for key, value, limit in rows if value == NEW},
            {
                key: Known(value - limit + limits[key], limits[key])
                for key, value, limit in rows
                if limit != limits[key]
            },
        )


def admitting_new(
    transaction: Transaction, opened: Opened, new: Mapping[str, Sequence[int]]
) -> Admission:
    """Choose which of the ``new`` jobs of each key to admit, which are in the order of their ranks,
    or any jobs of keys whose limit changes."""
    left = opened.free | opened.new
    if opened.new:
        # Without a lock, which would take the gaps between the keys of others as well.
        for key, holders in transaction.execute([counting(opened.new)])[0].rows:
            left[str(key)] -= int(holders)
    job_ids = list[int]()
    for key, number in list(left.items()):
        chosen = new[key][: max(0, number)]
        left[key] -= len(chosen)
        job_ids += chosen
    admission = Admission(frozenset(job_ids), [*_moves(job_ids), *set_values(left)])
    if not opened.changed:
        return admission
    limits = {key: known.limit for key, known in opened.changed.items()}
    setting = set_limits(server_of(transaction.connection), limits)
    counted = transaction.execute([setting, counting_few(transaction, limits)])[-1]
    others = admitting(transaction, free(opened.changed, counted))
    return Admission(
        admission.job_ids | others.job_ids, [*admission.statements, *others.statements]
    )


def admitting(transaction: Transaction, free: Mapping[str, int]) -> Admission:
    """Choose the jobs to admit, by the ``free`` permits of locked semaphores."""
    left = dict(free)
    picks = [
        Statement(PICK.format(limit=number), [key]) for key, number in left.items() if number > 0
    ]
    results = transaction.execute(picks) if picks else []
    chosen = [row for result in results for row in result.rows]
    for _, key in chosen:
        left[str(key)] -= 1
    job_ids = [job_id for job_id, _ in chosen]
    return Admission(frozenset(job_ids), [*_moves(job_ids), *set_values(left)])


def finding_refused(job_ids: Iterable[int]) -> list[Statement]:
    """Return statements that lock the jobs that are blocked but must not wait, and read their ids
    and metadata."""
    return with_ids(FIND_REFUSED, job_ids)


def discarding_refused(job_ids: Sequence[int]) -> list[Statement]:
    """Return statements that delete jobs that are blocked but must not wait."""
    return with_ids(DISCARD_REFUSED, job_ids)


def _moves(job_ids: Sequence[int]) -> list[Statement]:
    """Return statements that give blocked jobs permits, and make them ready."""
    return [each for sql in (GIVE_PERMITS, MAKE_READY, UNBLOCK) for each in with_ids(sql, job_ids)]
