"""Listing the names of queues, without reading a row for each job."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables

# DISTINCT would read a million rows to name ten queues. This asks the index for the first name,
# then for the next greater one, until there is none.
LIST_QUEUES = f"""
WITH RECURSIVE queue(name) AS (
  SELECT min(queue_name) FROM {tables.READY} WHERE queue_name >= %s
  UNION ALL
  SELECT (SELECT min(queue_name) FROM {tables.READY} WHERE queue_name > queue.name)
  FROM queue WHERE starts_with(queue.name, %s))
SELECT name FROM queue WHERE starts_with(name, %s)"""


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    """Return the names of queues with ready jobs that start with ``prefix``, by code point."""
    with connection.cursor() as cursor:
        cursor.execute(LIST_QUEUES, [prefix, prefix, prefix])
        return sorted(name for (name,) in cursor.fetchall())
