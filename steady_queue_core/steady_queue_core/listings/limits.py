"""Concurrency keys and rate limits that are in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from ..dialects import JobRate
from ..dialects.database import Database
from ..features.rates.pace import Pace
from ..models import BlockedExecution, Rate, Semaphore
from ..models.rate import number
from ..timezones import MICROSECOND, from_microseconds, to_microseconds
from .counts import BoundedCount, count_each
from .damage import read_in_order

#: Keys that one statement counts.
MOST_AT_ONCE = 50


@dataclass(frozen=True)
class ListedSemaphore:
    """A concurrency key with permits in use."""

    key: str
    in_use: int
    limit: int
    waiting: BoundedCount


@dataclass(frozen=True)
class ListedRate:
    """A key with a rate limit whose jobs have started lately, or have slots."""

    row: Rate
    #: Microseconds since 1970, by the database's clock.
    present: int

    @property
    def key(self) -> str:
        return str(self.row.key)

    @property
    def rate(self) -> JobRate | None:
        """The rate of the job that has asked last; ``None``: the row was damaged."""
        per = duration_of(number(self.row.period))
        return JobRate.of((str(self.row.key), self.row.limit, per, self.row.burst))

    @property
    def slots_taken(self) -> int:
        """How many jobs wait for a slot, as far as nobody has cancelled them."""
        time, rate = self._free_at - self.present, self.rate
        if rate is None or time <= 0:
            return 0
        return int(-(-time // Pace.of(rate).time_of(1)))

    @property
    def free_at(self) -> datetime | None:
        """When the next slot is free; ``None``: now."""
        return from_microseconds(self._free_at) if self._free_at > self.present else None

    @property
    def _free_at(self) -> int:
        return number(self.row.line) + number(self.row.shift)


def listed_semaphores(using: str, limit: int, after: str | None = None) -> list[ListedSemaphore]:
    """Return at most ``limit`` concurrency keys, sorted, from the one ``after`` a key on."""
    rows = _page(Semaphore, using, limit, after)
    blocked = BlockedExecution.objects.using(using).order_by()
    counts: list[BoundedCount] = []
    for start in range(0, len(rows), MOST_AT_ONCE):
        part = rows[start : start + MOST_AT_ONCE]
        counts += count_each(using, [blocked.filter(concurrency_key=row.pk) for row in part])
    return [
        ListedSemaphore(
            str(row.key), number(row.limit) - number(row.value), number(row.limit), count
        )
        for row, count in zip(rows, counts, strict=True)
    ]


def listed_rates(using: str, limit: int, after: str | None = None) -> list[ListedRate]:
    """Return at most ``limit`` keys with a rate limit, sorted, from the one ``after`` a key on."""
    present = to_microseconds(Database.of(using).current_time())
    return [ListedRate(row, present) for row in _page(Rate, using, limit, after)]


def duration_of(microseconds: int) -> timedelta:
    """Return a duration; the longest if it cannot be told."""
    try:
        return microseconds * MICROSECOND
    except OverflowError:
        return timedelta.max


def _page(model: Any, using: str, limit: int, after: str | None) -> Sequence[Any]:
    rows: QuerySet[Any] = model.objects.using(using).order_by("pk")
    if after is not None:
        rows = rows.filter(pk__gt=after)
    keys = list(rows.values_list("pk", flat=True)[:limit])
    found, _ = read_in_order(model.objects.using(using), keys)
    return found
