"""Permits of semaphores.

Taking or ending permits of a key begins with a statement that only locks its semaphore: under READ
COMMITTED, the statements after it see what the previous holder of the lock has committed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable, tables

from .clock import NOW_SQL
from .conflicts import REPLACE_READY
from .prepared import fetch
from .transactions import transaction

LOCK = f"""
SELECT "key" FROM {tables.SEMAPHORES} WHERE "key" = ANY(%(keys)s) ORDER BY "key" FOR UPDATE"""

# All permits are counted only for a semaphore that is missing. What is a scalar subquery here is
# looked up by its key: for EXISTS, or a join, a planner may read the whole table.
SET_LIMITS = f"""
INSERT INTO {tables.SEMAPHORES} AS known ("key", value, "limit")
SELECT "key", CASE
  WHEN (SELECT true FROM {tables.SEMAPHORES} AS existing WHERE existing."key" = given."key")
  THEN 0
  ELSE "limit" - (SELECT count(*) FROM {tables.PERMITS} AS permit WHERE permit."key" = given."key")
END, "limit"
FROM unnest(%(keys)s::text[], %(limits)s::int[]) AS given("key", "limit")
ORDER BY "key" COLLATE "C"
ON CONFLICT ("key") DO UPDATE
SET value = known.value - known."limit" + excluded."limit", "limit" = excluded."limit"
RETURNING "key" """

# A missing semaphore gets the limit of the first job that waits.
CREATE = f"""
INSERT INTO {tables.SEMAPHORES} AS known ("key", value, "limit")
SELECT given."key", concurrency_limit - (SELECT count(*) FROM {tables.PERMITS} AS permit
                                         WHERE permit."key" = given."key"), concurrency_limit
FROM unnest(%(keys)s::text[]) AS given("key")
CROSS JOIN LATERAL (
  SELECT concurrency_limit FROM (
    SELECT waiting."rank", job_id, (SELECT concurrency_limit FROM {tables.JOBS}
                                    WHERE id = waiting.job_id) AS concurrency_limit
    FROM {tables.BLOCKED} AS waiting WHERE waiting.concurrency_key = given."key"
  ) AS limited
  WHERE concurrency_limit IS NOT NULL ORDER BY "rank", job_id LIMIT 1) AS first
ORDER BY given."key" COLLATE "C"
ON CONFLICT ("key") DO UPDATE SET value = known.value
RETURNING "key" """

# Semaphores, and how many permits are left of each; less than none, if more are held than there
# should be. Few are counted, in the order of the index: a planner may expect to find them anyhow.
FREE = f"""
{tables.SEMAPHORES} AS known CROSS JOIN LATERAL (
  SELECT CASE WHEN count(*) > {portable.FEW_PERMITS} THEN known.value
              ELSE known."limit" - count(*) END AS remaining
  FROM (SELECT FROM {tables.PERMITS} AS permit
        WHERE permit."key" >= known."key" AND permit."key" <= known."key"
        ORDER BY permit."key" LIMIT {portable.FEW_PERMITS + 1}) AS few) AS free"""

ADMIT = f"""
WITH semaphore AS MATERIALIZED (
  SELECT "key", remaining FROM {FREE} WHERE "key" = ANY(%(keys)s)
), picked AS MATERIALIZED (
  SELECT first.job_id FROM semaphore CROSS JOIN LATERAL (
    SELECT job_id FROM {tables.BLOCKED} AS waiting
    WHERE waiting.concurrency_key = semaphore."key"
    ORDER BY waiting."rank", waiting.job_id LIMIT GREATEST(0, remaining)) AS first
), admitted AS (
  DELETE FROM {tables.BLOCKED} WHERE job_id = ANY(ARRAY(SELECT job_id FROM picked))
  RETURNING job_id, queue_name, "rank", token, concurrency_key
), permit AS (
  INSERT INTO {tables.PERMITS} (job_id, "key") SELECT job_id, concurrency_key FROM admitted
  ON CONFLICT (job_id) DO UPDATE SET "key" = excluded."key"
), ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL}, job_id FROM admitted
  {REPLACE_READY}
), counted AS (
  UPDATE {tables.SEMAPHORES} AS known
  SET value = remaining - (SELECT count(*) FROM admitted
                           WHERE admitted.concurrency_key = semaphore."key")
  FROM semaphore
  WHERE known."key" = ANY(%(keys)s) AND known."key" = semaphore."key"
)
SELECT count(*) FROM admitted"""

# A job that has run before is kept, whatever it asks for.
DISCARD_REFUSED = f"""
WITH refused AS (
  DELETE FROM {tables.BLOCKED} AS waiting USING {tables.JOBS} AS job
  WHERE waiting.job_id = ANY(%(job_ids)s) AND waiting.token < {portable.FIRST_TOKEN}
        AND job.id = ANY(%(job_ids)s) AND job.id = waiting.job_id AND job.concurrency_discards
  RETURNING waiting.job_id
)
DELETE FROM {tables.JOBS} WHERE id = ANY(ARRAY(SELECT job_id FROM refused))
RETURNING id, metadata"""


def admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    if not keys:
        return 0
    with transaction(connection):
        create(connection, set(keys) - lock(connection, keys))
        return admit_locked(connection, keys)


def lock(connection: BaseDatabaseWrapper, keys: Collection[str]) -> set[str]:
    """Lock semaphores, inside a transaction; return the keys of those that exist."""
    return {key for (key,) in fetch(connection, LOCK, {"keys": list(keys)})}


def create(connection: BaseDatabaseWrapper, missing: Collection[str]) -> None:
    """Create missing semaphores for which jobs wait, and lock them."""
    if missing:
        fetch(connection, CREATE, {"keys": list(missing)})


def set_limits(connection: BaseDatabaseWrapper, limits: Mapping[str, int]) -> None:
    """Create or change semaphores, and lock them, inside a transaction."""
    fetch(connection, SET_LIMITS, {"keys": list(limits), "limits": list(limits.values())})


def admit_locked(connection: BaseDatabaseWrapper, keys: Collection[str]) -> int:
    """Admit blocked jobs up to the free permits of these (already locked) semaphores; return how
    many."""
    [(admitted,)] = fetch(connection, ADMIT, {"keys": list(keys)})
    return int(admitted)


def discard_refused(
    connection: BaseDatabaseWrapper, job_ids: Sequence[int]
) -> dict[int, str | None]:
    """Delete the blocked jobs among these that must not wait; return their metadata by their
    ids."""
    return dict(fetch(connection, DISCARD_REFUSED, {"job_ids": list(job_ids)}))
