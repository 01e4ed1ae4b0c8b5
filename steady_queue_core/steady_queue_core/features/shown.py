"""What the features show of a job: on its page, and by the command ``show``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from .delivery.shown import rows as delivery
from .expiry.shown import events as expiry
from .fair.shown import rows as fair
from .rates.shown import rows as rates
from .retention.shown import events as retention_ends
from .retention.shown import rows as retention
from .schedules.shown import events as schedules
from .shown_row import Events, Row, Rows
from .unique.shown import rows as unique

ROWS: tuple[Rows, ...] = (delivery, rates, unique, fair, retention)
EVENTS: tuple[Events, ...] = (schedules, expiry, retention_ends)


def rows_of(job: Any, metadata: Any) -> Iterator[Row]:
    """Yield what there is to say of a job with these ``JobMetadata``."""
    for rows in ROWS:
        yield from rows(job, metadata)


def events_of(job: Any, metadata: Any) -> Iterator[tuple[str, datetime | None]]:
    """Yield what happens to it, and when."""
    for events in EVENTS:
        yield from events(job, metadata)
