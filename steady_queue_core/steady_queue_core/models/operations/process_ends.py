"""Deleting what is kept of processes that have ended long ago, or that are too many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from ..process_end import ProcessEnd
from .clear import Sweep

#: For how long an end is kept, and how many at the most.
KEPT, MOST = timedelta(days=14), 2_000


class PastEnds(Sweep):
    """The oldest ends. A worker that dies again and again must not fill the table."""

    def __init__(self, using: str, present: datetime, most: int = MOST) -> None:
        super().__init__(using, present - KEPT)
        self._rows, self._most = ProcessEnd.objects.using(using), most
        self._excess: int | None = None

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        # Always from the first one on: those before it are gone.
        return self._rows.order_by("pk").values_list("ended_at", "pk")

    def _past(self, rows: list[Any]) -> list[Any]:
        excess = self._last_in_excess() if rows else 0
        return [row for row in rows if row[0] < self.before or row[1] <= excess]

    def _last_in_excess(self) -> int:
        if self._excess is None:
            newest = self._rows.order_by("-pk").values_list("pk", flat=True)
            self._excess = next(iter(newest[self._most : self._most + 1]), 0)
        return self._excess

    def _delete(self, keys: Sequence[int]) -> int:
        with self.database.transaction():
            return self._rows.filter(pk__in=keys)._raw_delete(self.using)
