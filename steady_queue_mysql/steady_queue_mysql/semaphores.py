"""Semaphores: locking and changing their rows, and counting the permits that are few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from steady_queue_core.dialects import portable, tables

from .batches import Result, Statement
from .inline_tables import chunks
from .server import Server
from .transactions import Transaction

# In the order of the index, as everywhere that several are locked.
LOCK = f"""
SELECT `key`, value, `limit` FROM {tables.SEMAPHORES} FORCE INDEX (PRIMARY)
WHERE `key` IN ({{keys}}) ORDER BY `key` FOR UPDATE"""
SET_LIMITS = f"""
INSERT INTO {tables.SEMAPHORES} (`key`, value, `limit`) VALUES {{rows}} {{overwriting}}"""
# A row that exists is locked, and stays as it is. No value is that far below 0.
NEW = -(10**9)
OPEN = f"""
INSERT INTO {tables.SEMAPHORES} (`key`, value, `limit`) VALUES {{rows}} {{overwriting}}"""
# Key by key: for a list of keys the optimizer may read, and lock, the whole index.
COUNT = f"""
(SELECT %s AS `key`, count(*) FROM {tables.PERMITS} FORCE INDEX (steady_queue_permits_key)
 WHERE `key` = %s{{lock}})"""
COUNT_FEW = f"""
(SELECT %s AS `key`, count(*)
 FROM (SELECT 1 FROM {tables.PERMITS} FORCE INDEX (steady_queue_permits_key)
       WHERE `key` = %s LIMIT {portable.FEW_PERMITS + 1}{{lock}}) few)"""
SET_VALUES = f"""
UPDATE {tables.SEMAPHORES} FORCE INDEX (PRIMARY) SET value = CASE `key` {{cases}} END
WHERE `key` IN ({{keys}})"""


def lock(keys: Iterable[str]) -> Statement:
    """Return a statement that locks semaphores; ``known_by`` reads its result."""
    return _of_keys(LOCK, keys)


class Known(NamedTuple):
    """What a semaphore says that is locked."""

    value: int
    limit: int


def known_by(locked: Result) -> dict[str, Known]:
    return {str(key): Known(int(value), int(limit)) for key, value, limit in locked.rows}


def free(
    known: Mapping[str, Known], counted: Result, ended: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return how many permits of each semaphore are left; less than none, if more are held than
    there should be. ``counted`` tells of few that are held, ``ended`` how many have ended since the
    semaphores were read."""
    few = {str(key): int(number) for key, number in counted.rows}
    return {
        key: each.limit - few[key]
        if few[key] <= portable.FEW_PERMITS
        else min(each.limit, each.value + (ended or {}).get(key, 0))
        for key, each in known.items()
    }


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
    return [Statement(opening, keys), lock(keys)]


def counting_now(transaction: Transaction, keys: Iterable[str]) -> Statement:
    """Return a statement that counts the permits of each key, also those that are newer than the
    snapshot of a caller's transaction: elsewhere a lock would take a hundred times as long."""
    return counting(keys, locking=transaction.sees_past)


def counting_few(transaction: Transaction, keys: Iterable[str]) -> Statement:
    """Return a statement like this, which does not count further than to one more than few."""
    return counting(keys, COUNT_FEW, locking=transaction.sees_past)


def counting(keys: Iterable[str], sql: str = COUNT, *, locking: bool = False) -> Statement:
    """Return a statement that counts the permits of each key."""
    ordered = sorted(keys)
    parts = [sql.replace("{lock}", " FOR UPDATE" if locking else "")] * len(ordered)
    return Statement(" UNION ALL ".join(parts), [key for key in ordered for _ in range(2)])


def set_values(left: Mapping[str, int]) -> list[Statement]:
    """Return statements that write how many permits are left of each semaphore."""
    statements = []
    for keys in chunks(sorted(left), len):
        cases = " ".join(f"WHEN %s THEN {left[key]}" for key in keys)
        marks = ", ".join(["%s"] * len(keys))
        sql = SET_VALUES.replace("{cases}", cases).replace("{keys}", marks)
        statements.append(Statement(sql, [*keys, *keys]))
    return statements


def _of_keys(sql: str, keys: Iterable[str]) -> Statement:
    ordered = sorted(keys)
    return Statement(sql.replace("{keys}", ", ".join(["%s"] * len(ordered))), ordered)
