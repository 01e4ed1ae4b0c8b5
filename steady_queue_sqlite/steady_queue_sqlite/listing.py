"""Listing the names of queues, by a walk over the index."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable, tables

# SQLite answers DISTINCT by reading every row, unless ANALYZE was run, which is rare. The
# recursion asks the index for the next greater name instead.
LIST_QUEUES = f"""
WITH RECURSIVE queue(name) AS (
  SELECT * FROM (SELECT queue_name FROM {tables.READY}
                 WHERE queue_name >= %s AND queue_name < %s ORDER BY queue_name LIMIT 1)
  UNION ALL
  SELECT (SELECT queue_name FROM {tables.READY}
          WHERE queue_name > queue.name AND queue_name < %s ORDER BY queue_name LIMIT 1)
  FROM queue WHERE queue.name IS NOT NULL)
SELECT name FROM queue WHERE name IS NOT NULL"""

#: Greater than any text in UTF-8: a blob sorts after all text.
AFTER_ALL = b""


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    end = portable.prefix_end(prefix) or AFTER_ALL
    with connection.cursor() as cursor:
        cursor.execute(LIST_QUEUES, [prefix, end, end])
        return [name for (name,) in cursor.fetchall()]
