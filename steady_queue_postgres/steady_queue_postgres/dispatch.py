"""Moving due jobs to ready: one statement."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Dispatched, tables

from .clock import NOW_SQL, seconds
from .enqueue import TAKE_OVER
from .statements import fetch

# Of the rows still scheduled, one that another dispatcher holds may be due: then it is so in 0 s.
DISPATCH = f"""
WITH due AS MATERIALIZED (
  SELECT ctid AS place FROM {tables.SCHEDULED} WHERE due_at <= {NOW_SQL}
  ORDER BY due_at, "rank", job_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), moved AS (
  DELETE FROM {tables.SCHEDULED} WHERE ctid = ANY(ARRAY(SELECT place FROM due))
  RETURNING job_id, queue_name, "rank", token
), ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL} FROM moved
  {TAKE_OVER}
)
SELECT (SELECT count(*) FROM moved),
       CASE WHEN EXISTS (SELECT FROM {tables.SCHEDULED}
                         WHERE due_at <= {NOW_SQL} AND job_id NOT IN (SELECT job_id FROM moved))
            THEN 0
            ELSE (SELECT {seconds(f"min(due_at) - {NOW_SQL}")} FROM {tables.SCHEDULED}
                  WHERE due_at > {NOW_SQL}) END"""


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    [(moved, next_due_in)] = fetch(connection, DISPATCH, {"limit": max(0, limit)})
    return Dispatched(moved, next_due_in)
