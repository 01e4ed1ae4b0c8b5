"""Where in the index of ready jobs a worker goes on to read.

Entries of jobs that were claimed stay in the index as long as any transaction may still want to see
them, and every claim steps over them, at a tenth of a microsecond each: behind a backup of an hour
that adds up to a second per claim. No vacuum setting helps, so they are passed over as the jobs of
paused queues are.
"""

from __future__ import annotations

from typing import NamedTuple

from steady_queue_core.dialects import portable
from steady_queue_core.dialects.portable import Span

#: From so many dead rows on bookmarks are used.
MANY = 10_000

Columns = dict[str, list[int] | list[str | None]]


class InTheWay(NamedTuple):
    """What a claim may have to step over."""

    dead_rows: float
    of_paused: int


def columns(spans: list[Span]) -> Columns:
    """Return ``spans`` as the statements take them."""
    queues, ranks, jobs, ends = map(list, zip(*spans, strict=True))
    return {"queues": queues, "ranks": ranks, "jobs": jobs, "ends": ends}


def take_note(bookmarks: portable.Bookmarks, found: InTheWay) -> None:
    """Have ``bookmarks`` used while there is much to step over."""
    bookmarks.answer(found.of_paused, others=found.dead_rows >= MANY)
