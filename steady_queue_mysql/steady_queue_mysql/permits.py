"""Permits of semaphores. The semaphore of a key is locked before its permits are changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable, tables

from .batches import Result, Statement
from .clock import NOW_SQL
from .inline_tables import chunks, with_ids
from .server import Server, server_of
from .transactions import Transaction, run_in_transaction

# In the order of the index, as everywhere that several are locked.
LOCK = f"""
SELECT `key`, `limit` FROM {tables.SEMAPHORES} FORCE INDEX (PRIMARY)
WHERE `key` IN ({{keys}}) ORDER BY `key` FOR UPDATE"""
SET_LIMITS = f"""
INSERT INTO {tables.SEMAPHORES} (`key`, value, `limit`) VALUES {{rows}} {{overwriting}}"""
# A row that exists is locked, and stays as it is.
NEW = -1
OPEN = f"""
INSERT INTO {tables.SEMAPHORES} (`key`, value, `limit`) VALUES {{rows}} {{overwriting}}"""
READ = f"""
SELECT `key`, value, `limit` FROM {tables.SEMAPHORES} FORCE INDEX (PRIMARY)
WHERE `key` IN ({{keys}}) ORDER BY `key` FOR UPDATE"""
# Key by key: for a list of keys the optimizer may read, and lock, the whole index.
COUNT = f"""
(SELECT %s AS `key`, count(*) FROM {tables.PERMITS} FORCE INDEX (steady_queue_permits_key)
 WHERE `key` = %s{{lock}})"""
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
SET_VALUES = f"""
UPDATE {tables.SEMAPHORES} FORCE INDEX (PRIMARY) SET value = CASE `key` {{cases}} END
WHERE `key` IN ({{keys}})"""

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
    limits = limits_of(locked)
    limits |= create(transaction, set(keys) - limits.keys())
    if not limits:
        return Admission(frozenset(), [])
    [counted] = transaction.execute([counting_now(transaction, limits)])
    return admitting(transaction, limits, counted)


def create(transaction: Transaction, missing: Collection[str]) -> dict[str, int]:
    """Create missing semaphores with the limits of the jobs that wait longest; return these."""
    if not missing:
        return {}
    keys = sorted(missing)
    results = transaction.execute([Statement(FIRST_LIMIT, [key]) for key in keys])
    found = {
        key: int(result.rows[0][0])
        for key, result in zip(keys, results, strict=True)
        if result.rows and result.rows[0][0] is not None
    }
    if found:
        transaction.execute([set_limits(server_of(transaction.connection), found)])
    return found


def lock(keys: Iterable[str]) -> Statement:
    """Return a statement that locks semaphores; ``limits_of`` reads its result."""
    return _of_keys(LOCK, keys)


def limits_of(locked: Result) -> dict[str, int]:
    return {str(key): int(limit) for key, limit in locked.rows}


def set_limits(server: Server, limits: Mapping[str, int]) -> Statement:
    """Return a statement that creates or changes semaphores, and locks them."""
    keys = sorted(limits)
    rows = ", ".join(f"(%s, 0, {int(limits[key])})" for key in keys)
    return Statement(SET_LIMITS.format(rows=rows, overwriting=server.overwriting("`limit`")), keys)


def open_semaphores(server: Server, limits: Mapping[str, int]) -> list[Statement]:
    """Return statements that lock semaphores, and create those that are missing; ``Opened`` reads
    the result of the last."""
    keys = sorted(limits)
    rows = ", ".join(f"(%s, {NEW}, {int(limits[key])})" for key in keys)
    opening = OPEN.format(rows=rows, overwriting=server.overwriting("`key`"))
    return [Statement(opening, keys), _of_keys(READ, keys)]


def counting_now(transaction: Transaction, keys: Iterable[str]) -> Statement:
    """Return a statement that counts the permits of each key, also those that are newer than the
    snapshot of a caller's transaction: elsewhere a lock would take a hundred times as long."""
    return counting(keys, locking=transaction.sees_past)


def counting(keys: Iterable[str], *, locking: bool = False) -> Statement:
    """Return a statement that counts the permits of each key."""
    ordered = sorted(keys)
    parts = [COUNT.replace("{lock}", " FOR UPDATE" if locking else "")] * len(ordered)
    return Statement(" UNION ALL ".join(parts), [key for key in ordered for _ in range(2)])


class Opened(NamedTuple):
    """What semaphores say that were locked for new jobs."""

    #: The free permits of those whose limit stays: nobody waits for them.
    free: dict[str, int]
    #: The limits of those that were missing. Permits may be there, after manual edits.
    new: dict[str, int]
    #: The limits of the others, by which the jobs that wait are admitted.
    changed: dict[str, int]

    @classmethod
    def of(cls, result: Result, limits: Mapping[str, int]) -> Opened:
        rows = [(str(key), int(value), int(limit)) for key, value, limit in result.rows]
        return cls(
            {key: value for key, value, limit in rows if value != NEW and limit == limits[key]},
            {key: limit for key, value, limit in rows if value == NEW},
            {key: limits[key] for key, _, limit in rows if limit != limits[key]},
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
    admission = Admission(frozenset(job_ids), [*_moves(job_ids), *_set_values(left)])
    if not opened.changed:
        return admission
    setting = set_limits(server_of(transaction.connection), opened.changed)
    counted = transaction.execute([setting, counting_now(transaction, opened.changed)])[-1]
    others = admitting(transaction, opened.changed, counted)
    return Admission(
        admission.job_ids | others.job_ids, [*admission.statements, *others.statements]
    )


def admitting(transaction: Transaction, limits: Mapping[str, int], counted: Result) -> Admission:
    """Choose the jobs to admit, by locked semaphores and their ``counted`` permits."""
    left = dict(limits)
    for key, holders in counted.rows:
        if key in left:
            left[str(key)] -= int(holders)
    picks = [
        Statement(PICK.format(limit=number), [key]) for key, number in left.items() if number > 0
    ]
    results = transaction.execute(picks) if picks else []
    chosen = [row for result in results for row in result.rows]
    for _, key in chosen:
        left[str(key)] -= 1
    job_ids = [job_id for job_id, _ in chosen]
    return Admission(frozenset(job_ids), [*_moves(job_ids), *_set_values(left)])


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


def _set_values(left: Mapping[str, int]) -> list[Statement]:
    statements = []
    for keys in chunks(sorted(left), len):
        cases = " ".join(f"WHEN %s THEN {max(0, left[key])}" for key in keys)
        marks = ", ".join(["%s"] * len(keys))
        sql = SET_VALUES.replace("{cases}", cases).replace("{keys}", marks)
        statements.append(Statement(sql, [*keys, *keys]))
    return statements


def _of_keys(sql: str, keys: Iterable[str]) -> Statement:
    ordered = sorted(keys)
    return Statement(sql.replace("{keys}", ", ".join(["%s"] * len(ordered))), ordered)
