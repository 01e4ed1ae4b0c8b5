"""The position in the index of ready jobs from which a worker continues.

Entries of claimed jobs stay in the index as long as any transaction may still see them, and every
claim steps over them, at a tenth of a microsecond each: during a backup of an hour that adds up to
a second per claim. No vacuum setting helps, so they are passed over like jobs of paused queues.
"""

from __future__ import annotations

from typing import NamedTuple

from steady_queue_core.dialects import portable
from steady_queue_core.dialects.portable import Span

from .arrays import array

#: The number of dead rows from which bookmarks are used.
MANY = 10_000


class InTheWay(NamedTuple):
    """Counts of the index entries that a claim may have to step over."""

    dead_rows: float
    of_paused: int


def columns(spans: list[Span]) -> dict[str, str]:
    """Return ``spans`` as parameters of the statements."""
    queues, ranks, turns, ends = map(array, zip(*spans, strict=True))
    return {"queues": queues, "ranks": ranks, "turns": turns, "ends": ends}


def take_note(bookmarks: portable.Bookmarks, found: InTheWay) -> None:
    """Turn ``bookmarks`` on while there is much to step over, and off otherwise."""
    bookmarks.answer(found.of_paused, others=found.dead_rows >= MANY)
