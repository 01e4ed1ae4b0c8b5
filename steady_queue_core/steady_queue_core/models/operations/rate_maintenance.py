"""Deleting the rows of rate limits that say nothing any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from ...timezones import to_microseconds
from ..rate import Rate, number
from .clear import Sweep

#: For how long nobody has started, and nobody has had a slot.
IDLE = timedelta(hours=1)


class IdleRates(Sweep):
    """The keys of which the next start would be permitted at once, and has been for long."""

    def __init__(self, using: str, present: datetime) -> None:
        super().__init__(using, present)
        self._since = to_microseconds(present - IDLE)
        self._rows = Rate.objects.using(using)

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        rows = self._rows if self.position is None else self._rows.filter(pk__gt=self.position[0])
        return rows.order_by("pk").values_list("pk")

    def _past(self, rows: list[Any]) -> list[Any]:
        return rows

    def _delete(self, keys: Sequence[Any]) -> int:
        idle = [row.pk for row in self._rows.filter(pk__in=keys) if self._is_idle(row)]
        if not idle:
            return 0
        with self.database.transaction():
            rows = self._rows.filter(pk__in=idle).order_by("pk")
            # Again: somebody may have started meanwhile.
            locked = self.database.lock_rows(rows, wait=False)
            still = [row.pk for row in locked if self._is_idle(row)]
            self._rows.filter(pk__in=still)._raw_delete(self.using)
        return len(still)

    def _is_idle(self, row: Any) -> bool:
        return max(number(row.gate), number(row.line) + number(row.shift)) < self._since
