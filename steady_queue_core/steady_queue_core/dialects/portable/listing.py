"""Listing the names of queues, and of the paused ones; counting their ready jobs."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from ..queue_selector import QueueSelector
from .models import rows_of

LAST_CODE_POINT = 0x10FFFF


def list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    """List the queues that have ready jobs. Reads every ready row of the prefix."""
    rows = rows_of(connection, "ReadyExecution")
    if prefix:
        rows = rows.filter(queue_name__gte=prefix)
        end = prefix_end(prefix)
        if end is not None:
            rows = rows.filter(queue_name__lt=end)
    return sorted(rows.order_by().values_list("queue_name", flat=True).distinct())


def count_ready(connection: BaseDatabaseWrapper, queue_name: str, limit: int) -> int:
    """Count the ready jobs of a queue, up to ``limit``, in the order of an index."""
    rows = rows_of(connection, "ReadyExecution").filter(queue_name=queue_name)
    counted: int = rows.order_by("rank", "turn")[:limit].count()
    return counted


def prefix_end(prefix: str) -> str | None:
    """Return the first name after all that start with ``prefix``, or ``None`` if there is none.

    A range matches a prefix exactly wherever names compare by code point. Unlike LIKE it needs no
    escapes for ``%`` and ``_``, and it always uses the index.
    """
    while prefix:
        head, last = prefix[:-1], ord(prefix[-1])
        if last < LAST_CODE_POINT:
            # The surrogates, U+D800 to U+DFFF, are not characters and cannot be stored.
            following = 0xE000 if last == 0xD7FF else last + 1
            return head + chr(following)
        prefix = head
    return None


def excluded_ranges(selector: QueueSelector) -> list[tuple[str, str | None]]:
    """Return the ranges of names that ``selector`` leaves out: from the first name on, before the
    second one, or to the end for ``None``."""
    # No character of a name sorts before U+0001, so that only the name itself is in its range.
    return [
        (entry[:-1], prefix_end(entry[:-1])) if entry.endswith("*") else (entry, f"{entry}\x01")
        for entry in selector.excluded
    ]


def paused_queues(connection: BaseDatabaseWrapper) -> frozenset[str]:
    """Return the names of the paused queues."""
    pauses = rows_of(connection, "Pause")
    return frozenset(pauses.values_list("queue_name", flat=True))
