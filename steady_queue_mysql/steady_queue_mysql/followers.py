"""Claiming the blocked jobs that follow claimed ones, under the locks of their semaphores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import (
    Chain,
    ClaimedJob,
    ProcessIdentity,
    chained,
    chains_of,
    tables,
)

from . import claim_sql as sql
from .batches import Result, Statement, execute_all
from .claim import claimed_job, inserting
from .claim_sql import Row, named
from .inline_tables import chunks, with_ids
from .permits import UNBLOCK
from .semaphores import Known, counting_few, free, known_by, lock
from .transactions import Transaction, run_in_transaction

# Read without a lock and a transaction: most keys have nobody waiting.
WAITING = f"""
(SELECT concurrency_key FROM {tables.BLOCKED} FORCE INDEX (steady_queue_blocked_release)
 WHERE concurrency_key = %s LIMIT 1)"""

# With a lock, to see what is newer than the snapshot of a caller's transaction.
HELD = f"""
SELECT c.job_id, c.token FROM {{given}} STRAIGHT_JOIN {tables.CLAIMED} c FORCE INDEX (PRIMARY)
ON c.job_id = given.id AND c.process_id = {{process}}
STRAIGHT_JOIN {tables.PERMITS} p FORCE INDEX (PRIMARY) ON p.job_id = given.id FOR UPDATE"""

# All rows of a key are locked by its semaphore: none is skipped, and none changes.
IS_CLAIMABLE = f"""
j.finished_at IS NULL AND j.concurrency_key = r.concurrency_key
AND NOT EXISTS (SELECT 1 FROM {tables.CLAIMED} c WHERE c.job_id = r.job_id)"""
PICK = (
    sql.PICK.replace(tables.READY, tables.BLOCKED)
    .replace("r.turn", "r.job_id")
    .replace(sql.IS_CURRENT, IS_CLAIMABLE)
    .replace(" SKIP LOCKED", "")
    .replace("{index}", "steady_queue_blocked_release")
    .replace("{where}", "r.concurrency_key = %s")
    .replace("{of}", "")
)


def claim_followers(
    connection: BaseDatabaseWrapper,
    process: ProcessIdentity,
    holders: Sequence[ClaimedJob],
    limit: int,
) -> list[ClaimedJob]:
    chains = _waited_for(connection, chains_of(holders))
    if not chains:
        return []

    def work(transaction: Transaction) -> list[ClaimedJob]:
        return _follow(transaction, process, chains, limit)

    return run_in_transaction(connection, work)


def _waited_for(connection: BaseDatabaseWrapper, chains: Sequence[Chain]) -> list[Chain]:
    statements = [
        Statement(" UNION ALL ".join([WAITING] * len(keys)), keys)
        for keys in chunks([chain.key for chain in chains], len)
    ]
    results = execute_all(connection, statements) if statements else []
    waited_for = {str(key) for result in results for (key,) in result.rows}
    return [chain for chain in chains if chain.key in waited_for]


def _follow(
    transaction: Transaction, process: ProcessIdentity, chains: Sequence[Chain], limit: int
) -> list[ClaimedJob]:
    known = _lock_free(transaction, chains)
    chains = [chain for chain in chains if chain.key in known]
    if not chains:
        return []
    job_ids = [claim.job_id for chain in chains for claim in chain.holders]
    held = with_ids(HELD.replace("{process}", str(int(process.id))), job_ids)
    picks = [_pick(chain, limit) for chain in chains]
    results = transaction.execute([sql.PAUSED, counting_few(transaction, known), *held, *picks])
    intact = _intact(chains, known, results[: 2 + len(held)])
    followers = [
        follower
        for chain, picked in zip(chains, results[2 + len(held) :], strict=True)
        if chain in intact
        for follower in chained(chain.holders, map(claimed_job, _next(chain, picked)))
    ]
    if followers:
        unblocked = with_ids(UNBLOCK, [follower.job_id for follower in followers])
        transaction.execute([inserting(followers, process), *unblocked], last=True)
    return followers


def _lock_free(transaction: Transaction, chains: Sequence[Chain]) -> dict[str, Known]:
    """Lock the semaphores that nobody else has locked; return them."""
    locking = lock(chain.key for chain in chains)
    [locked] = transaction.execute([locking._replace(sql=f"{locking.sql} SKIP LOCKED")])
    return known_by(locked)


def _pick(chain: Chain, limit: int) -> Statement:
    return Statement(PICK.replace("{limit}", str(int(limit) * len(chain.holders))), [chain.key])


def _intact(
    chains: Sequence[Chain], known: Mapping[str, Known], results: Sequence[Result]
) -> list[Chain]:
    """Return the chains whose claims and permits are all held, of keys that have no more permits
    than they may, and of queues that are not paused."""
    found, counted, *held = results
    paused = {str(name) for (name,) in found.rows}
    left = free(known, counted)
    claims = {(job_id, token) for result in held for job_id, token in result.rows}
    return [
        chain
        for chain in chains
        if chain.queue_name not in paused
        and left[chain.key] >= 0
        and claims.issuperset((claim.job_id, claim.token) for claim in chain.holders)
    ]


def _next(chain: Chain, picked: Result) -> list[Row]:
    """Return the rows that are next, up to the first of another queue, or stray one."""

    def belongs(row: Row) -> bool:
        return bool(row["is_current"]) and row["queue_name"] == chain.queue_name

    return list(takewhile(belongs, named(picked)))
