"""Lists the names of queues by a walk over the index."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable, tables

from .prepared import fetch

# PostgreSQL reads every row for DISTINCT, even in version 18. The recursion asks the index for the
# next greater name instead, until it has passed the end of the range.
WALK = f"""
WITH RECURSIVE queue(name) AS (
  (SELECT queue_name FROM {tables.READY} WHERE queue_name >= wanted.low
   ORDER BY queue_name LIMIT 1)
  UNION ALL
  SELECT (SELECT queue_name FROM {tables.READY} WHERE queue_name > queue.name
          ORDER BY queue_name LIMIT 1)
  FROM queue WHERE queue.name < wanted.high OR queue.name IS NOT NULL AND wanted.high IS NULL)
SELECT name FROM queue WHERE name < wanted.high OR name IS NOT NULL AND wanted.high IS NULL"""

LIST_QUEUES = f"""
SELECT found.name FROM (SELECT %(low)s::text AS low, %(high)s::text AS high) AS wanted
CROSS JOIN LATERAL ({WALK}) AS found"""


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    rows = fetch(connection, LIST_QUEUES, {"low": prefix, "high": portable.prefix_end(prefix)})
    return sorted(name for (name,) in rows)
