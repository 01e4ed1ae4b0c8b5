"""Lists the names of queues by a walk over the index, and counts ready jobs."""

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


# The name is part of the order, which only one index has then. A limit that the planner does not
# know makes it expect an early end: whatever the statistics say, or if there are none, it does not
# collect or sort all rows of the queue first.
COUNT = f"""
SELECT count(*) FROM (
  SELECT FROM {tables.READY} WHERE queue_name >= %(name)s AND queue_name <= %(name)s
  ORDER BY queue_name, "rank", turn LIMIT (SELECT %(limit)s::bigint)) AS counted"""


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    rows = fetch(connection, LIST_QUEUES, {"low": prefix, "high": portable.prefix_end(prefix)})
    return sorted(name for (name,) in rows)


def count_ready(connection: BaseDatabaseWrapper, queue_name: str, limit: int) -> int:
    [(counted,)] = fetch(connection, COUNT, {"name": queue_name, "limit": limit})
    return int(counted)
