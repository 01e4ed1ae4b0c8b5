"""Moves due jobs to ready: one statement."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Dispatched, portable, tables

from .clock import NOW_SQL, seconds
from .conflicts import REPLACE_BLOCKED, REPLACE_READY
from .permits import admit, discard_refused
from .prepared import fetch, fetch_named
from .transactions import planned_transaction

_DUE = f"""
due AS MATERIALIZED (
  SELECT ctid AS tid, concurrency_key FROM {tables.SCHEDULED}
  WHERE due_at <= {NOW_SQL} {{which}}
  ORDER BY due_at, "rank", job_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)"""

# A row that is due but still scheduled is locked by another dispatcher: then the next job is due in
# 0 s. Jobs with a limit stay scheduled: admitting them takes a transaction.
DISPATCH = f"""
WITH {_DUE.format(which="")}, moved AS (
  DELETE FROM {tables.SCHEDULED}
  WHERE ctid = ANY(ARRAY(SELECT tid FROM due WHERE concurrency_key IS NULL))
  RETURNING job_id, queue_name, "rank", token
), ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL}, job_id FROM moved
  {REPLACE_READY}
)
SELECT (SELECT count(*) FROM moved) AS moved,
       (SELECT count(*) FROM due WHERE concurrency_key IS NOT NULL) AS limited,
       CASE WHEN EXISTS (SELECT FROM {tables.SCHEDULED}
                         WHERE due_at <= {NOW_SQL} AND job_id NOT IN (SELECT job_id FROM moved))
            THEN 0
            ELSE (SELECT {seconds(f"min(due_at) - {NOW_SQL}")} FROM {tables.SCHEDULED}
                  WHERE due_at > {NOW_SQL}) END AS next_due_in"""

BLOCK = f"""
WITH {_DUE.format(which="AND concurrency_key IS NOT NULL")}, moved AS (
  DELETE FROM {tables.SCHEDULED} WHERE ctid = ANY(ARRAY(SELECT tid FROM due))
  RETURNING job_id, queue_name, "rank", token, concurrency_key
), blocked AS (
  INSERT INTO {tables.BLOCKED} (job_id, queue_name, "rank", token, created_at, concurrency_key)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL}, concurrency_key FROM moved
  {REPLACE_BLOCKED}
)
SELECT job_id, concurrency_key FROM moved"""

NEXT_DUE = f"SELECT {seconds(f'min(due_at) - {NOW_SQL}')} FROM {tables.SCHEDULED}"


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    [row] = fetch_named(connection, DISPATCH, {"limit": max(0, limit)})
    if not row["limited"]:
        return Dispatched(row["moved"], row["next_due_in"])
    moved = row["moved"] + _dispatch_limited(connection, row["limited"])
    [(next_due_in,)] = fetch(connection, NEXT_DUE, {})
    return Dispatched(moved, next_due_in and max(0.0, next_due_in))


def _dispatch_limited(connection: BaseDatabaseWrapper, limit: int) -> int:
    with planned_transaction(connection):
        blocked = fetch(connection, BLOCK, {"limit": limit})
        admit(connection, sorted({key for _, key in blocked}))
        refused = discard_refused(connection, [job_id for job_id, _ in blocked])
        portable.end_discarded(connection, refused)
    return len(blocked)
