"""What the features show of a job: on its page, and by the command ``show``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ..listings.damage import ERRORS
from .delivery.shown import delivery
from .expiry.shown import events as expiry
from .fair.shown import fair_key
from .rates.shown import rate_limit
from .retention.shown import events as retention
from .retention.shown import kept
from .schedules.shown import events as schedules
from .shown_row import Events, Parts, Shown
from .unique.shown import unique_key

ROWS: dict[str, Shown] = {
    "Delivery": delivery,
    "Rate limit": rate_limit,
    "Unique key": unique_key,
    "Fair key": fair_key,
    "Kept": kept,
}
EVENTS: tuple[Events, ...] = (schedules, expiry, retention)


def rows_of(job: Any, metadata: Any) -> Iterator[tuple[str, Parts]]:
    """Yield what there is to say of a job with these ``JobMetadata``, with its labels."""
    for label, shown in ROWS.items():
        try:
            parts = shown(job, metadata)
        except ERRORS:
            parts = ("(its row is damaged)",)
        if parts:
            yield label, parts


def events_of(job: Any, metadata: Any) -> Iterator[tuple[str, datetime | None]]:
    """Yield what happens to it, and when."""
    for events in EVENTS:
        yield from events(job, metadata)
