"""Claims the blocked jobs that follow claimed ones: one statement, under the semaphores' locks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import (
    Chain,
    ClaimedJob,
    ProcessIdentity,
    chained,
    chains_of,
    tables,
)

from .claim_sql import PAUSED, TAKE
from .clock import NOW_SQL, read, seconds
from .permits import FREE, LOCK
from .prepared import fetch, fetch_named
from .transactions import planned_transaction

# In the order of an index: otherwise the planner might read all that wait.
WAITING = f"""
SELECT wanted."key" FROM unnest(%(keys)s::text[]) AS wanted("key") CROSS JOIN LATERAL (
  SELECT FROM {tables.BLOCKED} WHERE concurrency_key = wanted."key"
  ORDER BY "rank", job_id LIMIT 1) AS waiting"""

LOCK_FREE = f"{LOCK} SKIP LOCKED"

# Chains whose claims and permits are all held, of keys that have no more permits than they may.
_INTACT = f"""
holder AS MATERIALIZED (
  SELECT * FROM unnest(%(keys)s::text[], %(queues)s::text[], %(jobs)s::bigint[],
                       %(tokens)s::bigint[]) AS holder("key", queue_name, job_id, token)),
held AS MATERIALIZED (
  SELECT claim.job_id, claim.token, permit."key"
  FROM {tables.CLAIMED} AS claim JOIN {tables.PERMITS} AS permit ON permit.job_id = claim.job_id
  WHERE claim.job_id = ANY(%(jobs)s) AND permit.job_id = ANY(%(jobs)s)
        AND claim.process_id = %(process_id)s),
chain AS MATERIALIZED (
  SELECT holder."key", min(holder.queue_name) AS queue_name, count(*) * %(limit)s AS wanted
  FROM holder LEFT JOIN held ON held.job_id = holder.job_id AND held.token = holder.token
                                AND held."key" = holder."key"
  WHERE holder.queue_name NOT IN ({PAUSED})
  GROUP BY holder."key"
  HAVING count(*) = count(held.job_id)
         AND (SELECT remaining FROM {FREE} WHERE known."key" = holder."key") >= 0),"""

# The first rows of each key. Stray ones, of jobs that are gone, have ended or run, do not fit.
_NEXT = f"""
next AS MATERIALIZED (
  SELECT chain."key", chain.queue_name AS wanted_queue, first.* FROM chain CROSS JOIN LATERAL (
    SELECT waiting.ctid AS tid, job_id, queue_name, "rank" FROM {tables.BLOCKED} AS waiting
    WHERE waiting.concurrency_key = chain."key"
    ORDER BY waiting."rank", waiting.job_id LIMIT chain.wanted) AS first),
fit AS MATERIALIZED (
  SELECT id, concurrency_key FROM {tables.JOBS}
  WHERE id = ANY(ARRAY(SELECT job_id FROM next)) AND finished_at IS NULL
        AND id <> ALL(ARRAY(SELECT job_id FROM {tables.CLAIMED}
                            WHERE job_id = ANY(ARRAY(SELECT job_id FROM next))))),"""

# Up to the first one that does not fit, or is in another queue.
_PICK = """
SELECT tid FROM (
  SELECT next.tid, bool_and(next.queue_name = wanted_queue AND fit.id IS NOT NULL)
                   OVER (PARTITION BY "key" ORDER BY "rank", job_id) AS belongs
  FROM next LEFT JOIN fit ON fit.id = next.job_id AND fit.concurrency_key = next."key") AS checked
WHERE belongs"""

_TAKE = TAKE.format(pick=_PICK, turn="job_id").replace(tables.READY, tables.BLOCKED)

FOLLOW = f"""
WITH {_INTACT} {_NEXT} {_TAKE}
SELECT job.*, {seconds(NOW_SQL)} AS claimed_at FROM job ORDER BY "rank", job_id"""


def claim_followers(
    connection: BaseDatabaseWrapper,
    process: ProcessIdentity,
    holders: Sequence[ClaimedJob],
    limit: int,
) -> list[ClaimedJob]:
    chains = _waited_for(connection, chains_of(holders))
    if not chains:
        return []
    with planned_transaction(connection):
        keys = {key for (key,) in fetch(connection, LOCK_FREE, _keys(chains))}
        chains = [chain for chain in chains if chain.key in keys]
        if not chains:
            return []
        rows = fetch_named(connection, FOLLOW, _values(process, chains, limit))
    by_key: dict[str, list[ClaimedJob]] = defaultdict(list)
    for row in rows:
        by_key[row["concurrency_key"]].append(
            ClaimedJob.from_row(row, read(row["claimed_at"]), read)
        )
    return [each for chain in chains for each in chained(chain.holders, by_key[chain.key])]


def _waited_for(connection: BaseDatabaseWrapper, chains: Sequence[Chain]) -> list[Chain]:
    rows = fetch(connection, WAITING, _keys(chains))
    keys = {key for (key,) in rows}
    return [chain for chain in chains if chain.key in keys]


def _keys(chains: Sequence[Chain]) -> dict[str, Any]:
    return {"keys": [chain.key for chain in chains]}


def _values(process: ProcessIdentity, chains: Sequence[Chain], limit: int) -> dict[str, Any]:
    holders = [(chain, claim) for chain in chains for claim in chain.holders]
    return {
        "process_id": process.id,
        "limit": limit,
        "keys": [chain.key for chain, _ in holders],
        "queues": [chain.queue_name for chain, _ in holders],
        "jobs": [claim.job_id for _, claim in holders],
        "tokens": [claim.token for _, claim in holders],
    }
