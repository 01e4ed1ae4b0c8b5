"""Listing the names of queues, by the loose index scan that both servers have for DISTINCT, and
counting ready jobs."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable, tables

from .batches import Statement, execute_all

# A recursive walk over the index, as the other dialects use it, took seconds here.
LIST = f"SELECT DISTINCT queue_name FROM {tables.READY} FORCE INDEX (steady_queue_ready_queue)"
FILLED = f"""
(SELECT queue_name FROM {tables.READY} FORCE INDEX (steady_queue_ready_queue)
 WHERE queue_name = %s LIMIT 1)"""

COUNT = f"""
SELECT COUNT(*) FROM (SELECT 1 FROM {tables.READY} FORCE INDEX (steady_queue_ready_queue)
                      WHERE queue_name = %s LIMIT {{limit:d}}) AS counted"""


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    [result] = execute_all(connection, [listing(prefix)])
    return sorted(str(name) for (name,) in result.rows)


def listing(prefix: str) -> Statement:
    """Return a statement for the names of queues with ready jobs that start with ``prefix``."""
    if not prefix:
        return Statement(LIST)
    end = portable.prefix_end(prefix)
    if end is None:
        return Statement(f"{LIST} WHERE queue_name >= %s", [prefix])
    return Statement(f"{LIST} WHERE queue_name >= %s AND queue_name < %s", [prefix, end])


def filled(names: Sequence[str]) -> Statement:
    """Return a statement for those of these queues that have ready jobs."""
    return Statement(" UNION ALL ".join([FILLED] * len(names)), names)


def count_ready(connection: BaseDatabaseWrapper, queue_name: str, limit: int) -> int:
    [result] = execute_all(connection, [Statement(COUNT.format(limit=limit), [queue_name])])
    return int(result.rows[0][0])
