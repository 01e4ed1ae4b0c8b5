"""Listing the names of queues, by a walk over the index, and counting ready jobs."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable, tables

from .transactions import BECOME_WRITER

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

# After ANALYZE, SQLite would read every row if most of them are in one queue.
COUNT = f"""
SELECT count(*) FROM (SELECT 1 FROM {tables.READY} INDEXED BY steady_queue_ready_queue
                      WHERE queue_name = %s LIMIT %s)"""


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    end = portable.prefix_end(prefix) or AFTER_ALL
    with connection.cursor() as cursor:
        cursor.execute(LIST_QUEUES, [prefix, end, end])
        return [name for (name,) in cursor.fetchall()]


def count_ready(connection: BaseDatabaseWrapper, queue_name: str, limit: int) -> int:
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            # The caller is about to write: a transaction that has read by then fails if another
            # connection has written in between.
            cursor.execute(BECOME_WRITER)
        cursor.execute(COUNT, [queue_name, limit])
        counted: int = cursor.fetchone()[0]
        return counted
