"""Claiming the blocked jobs that follow claimed ones, under the one write lock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import (
    Chain,
    ClaimedJob,
    ProcessIdentity,
    chained,
    chains_of,
    portable,
    tables,
)

from .claim import INSERT_CLAIMED, PAUSED, PICK, PICKED, Row
from .clock import from_text, present, read
from .permits import DELETE_BLOCKED, FREE
from .transactions import transaction

# Read without the write lock: most keys have nobody waiting.
WAITING = f"""
SELECT wanted.value FROM json_each(%s) AS wanted
WHERE EXISTS (SELECT 1 FROM {tables.BLOCKED} WHERE concurrency_key = wanted.value)"""

# Claims with permits, of keys that have no more of them than they may.
INTACT = f"""
SELECT c.job_id, c.token FROM json_each(%s) AS wanted
JOIN {tables.CLAIMED} c ON c.job_id = wanted.value AND c.process_id = %s
JOIN {tables.PERMITS} p ON p.job_id = c.job_id
JOIN {tables.SEMAPHORES} s ON s.key = p.key
WHERE {FREE} >= 0 AND c.queue_name NOT IN ({PAUSED})"""

PICK_BLOCKED = PICK.replace(tables.READY, tables.BLOCKED).format(
    where="WHERE r.concurrency_key = %s", turn="job_id"
)


def claim_followers(
    connection: BaseDatabaseWrapper,
    process: ProcessIdentity,
    holders: Sequence[ClaimedJob],
    limit: int,
) -> list[ClaimedJob]:
    with connection.cursor() as cursor:
        chains = _waited_for(cursor, chains_of(holders))
        if not chains:
            return []
        with transaction(connection):
            intact = _intact(cursor, process, chains)
            picked = [(chain, _pick(cursor, chain, limit)) for chain in intact]
            return _take(cursor, process, picked)


def _waited_for(cursor: Any, chains: Sequence[Chain]) -> list[Chain]:
    cursor.execute(WAITING, [json.dumps([chain.key for chain in chains])])
    keys = {key for (key,) in cursor.fetchall()}
    return [chain for chain in chains if chain.key in keys]


def _intact(cursor: Any, process: ProcessIdentity, chains: Sequence[Chain]) -> list[Chain]:
    """Return the chains whose claims and permits are all still held."""
    job_ids = [claim.job_id for chain in chains for claim in chain.holders]
    cursor.execute(INTACT, [json.dumps(job_ids), process.id])
    held = set(cursor.fetchall())
    return [
        chain
        for chain in chains
        if held.issuperset((claim.job_id, claim.token) for claim in chain.holders)
    ]


def _pick(cursor: Any, chain: Chain, limit: int) -> list[Row]:
    """Return the rows that are next, up to the first of another queue, or stray one."""
    cursor.execute(PICK_BLOCKED, [chain.key, limit * len(chain.holders)])
    rows = [dict(zip(PICKED, row, strict=True)) for row in cursor.fetchall()]
    return list(takewhile(lambda row: _belongs(row, chain), rows))


def _belongs(row: Row, chain: Chain) -> bool:
    of_chain = (row["queue_name"], row["concurrency_key"]) == (chain.queue_name, chain.key)
    return bool(row["is_claimable"]) and of_chain


def _take(
    cursor: Any, process: ProcessIdentity, picked: Sequence[tuple[Chain, list[Row]]]
) -> list[ClaimedJob]:
    """Move picked rows from blocked to claimed."""
    now = present(cursor)
    claimed_at = from_text(now)

    def claims(rows: Sequence[Row]) -> Iterator[ClaimedJob]:
        for row in rows:
            token = portable.next_token(row["token"])
            yield ClaimedJob.from_row(row | {"token": token}, claimed_at, read)

    followers = [each for chain, rows in picked for each in chained(chain.holders, claims(rows))]
    cursor.executemany(DELETE_BLOCKED, [(job.job_id,) for job in followers])
    cursor.executemany(
        INSERT_CLAIMED,
        [(job.job_id, job.queue_name, job.rank, job.token, now, process.id) for job in followers],
    )
    return followers
