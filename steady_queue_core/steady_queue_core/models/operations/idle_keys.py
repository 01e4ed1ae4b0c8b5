"""Deleting the rows of keys that say nothing any more: unique ones, turns and rate limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from ...dialects import Level
from ...dialects.turns import LARGEST, reached, valid_number
from ...timezones import to_microseconds
from ..rate import Rate, number
from ..turn import Turn
from ..unique_key import UniqueKey
from .sweep import KeySweep, Sweep

#: For how long nobody has started with a rate, and nobody has had a slot of it.
IDLE = timedelta(hours=1)


class KeptKeys(Sweep):
    """The unique keys that jobs have kept for long enough."""

    def __init__(self, using: str, before: datetime) -> None:
        super().__init__(using, before)
        self._keys = UniqueKey.objects.using(using)

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._keys, "expires_at")

    def _delete(self, keys: Sequence[Any]) -> int:
        with self.database.transaction():
            # Who is enqueueing with a key has locked it, and may give it to another job.
            due = {
                row.pk: row.job_id
                for row in self._lock(self._keys, keys)
                if row.expires_at is not None and row.expires_at < self.before
            }
            self.database.unique_keys.free(due)
        return len(due)


class LostKeys(KeySweep):
    """The unique keys whose job is gone, or has ended: somebody has deleted or changed it in SQL,
    or deleted it while it was to keep its key."""

    def __init__(self, using: str) -> None:
        super().__init__(using, UniqueKey.objects.using(using))

    def _delete(self, keys: Sequence[Any]) -> int:
        lost = list(self._lost(keys).values_list("pk", flat=True))
        if not lost:
            return 0
        with self.database.transaction():
            locked = {row.pk: row.job_id for row in self._lock(self._rows, lost)}
            still = set(self._lost(list(locked)).values_list("pk", flat=True))
            self.database.unique_keys.free({key: locked[key] for key in still})
        return len(still)

    def _lost(self, keys: Sequence[Any]) -> QuerySet[UniqueKey]:
        # A key that is kept for some time has ``expires_at``: it goes when that is over.
        has_ended = Q(job__finished_at__isnull=False, expires_at=None)
        is_gone = Q(job__enqueued_at__isnull=True)
        return self._rows.filter(has_ended | is_gone, pk__in=keys)


class IdleTurns(KeySweep):
    """The keys of fair queues whose next turn is no later than what their queue has reached:
    without a row they would get the same."""

    def __init__(self, using: str) -> None:
        super().__init__(using, Turn.objects.using(using))

    def _delete(self, keys: Sequence[Any]) -> int:
        with self.database.transaction():
            # Who is enqueueing with a key has locked its row, and is about to move it on.
            locked = self._lock(self._rows, keys)
            levels = {Level(row.queue_name, row.rank) for row in locked}
            passed = {level: reached(self.database.connection, level) for level in levels}
            idle = [
                row.pk for row in locked
                if valid_number(row.turn, 0.0, LARGEST, 0.0)
                <= passed[Level(row.queue_name, row.rank)]
            ]  # fmt: skip
            self._rows.filter(pk__in=idle)._raw_delete(self.using)
        return len(idle)


class IdleRates(KeySweep):
    """The keys of rates of which the next start would be permitted at once, and has been for
    long."""

    def __init__(self, using: str, present: datetime) -> None:
        super().__init__(using, Rate.objects.using(using))
        self._since = to_microseconds(present - IDLE)

    def _delete(self, keys: Sequence[Any]) -> int:
        idle = [row.pk for row in self._rows.filter(pk__in=keys) if self._is_idle(row)]
        if not idle:
            return 0
        with self.database.transaction():
            # Again: somebody may have started meanwhile.
            still = [row.pk for row in self._lock(self._rows, idle) if self._is_idle(row)]
            self._rows.filter(pk__in=still)._raw_delete(self.using)
        return len(still)

    def _is_idle(self, row: Any) -> bool:
        return max(number(row.gate), number(row.line) + number(row.shift)) < self._since
