"""Deleting the rows of keys of fair queues that say nothing any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from ...dialects import Level
from ...dialects.turns import LARGEST, reached, valid_number
from ..turn import Turn
from .clear import NEVER, Sweep


class IdleTurns(Sweep):
    """The keys whose next turn is no later than what their queue has reached: without a row they
    would get the same."""

    def __init__(self, using: str) -> None:
        super().__init__(using, NEVER)
        self._turns = Turn.objects.using(using)

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        rows = self._turns if self.position is None else self._turns.filter(pk__gt=self.position[0])
        return rows.order_by("pk").values_list("pk")

    def _past(self, rows: list[Any]) -> list[Any]:
        return rows

    def _delete(self, keys: Sequence[Any]) -> int:
        with self.database.transaction():
            # Who is enqueueing with a key has locked its row, and is about to move it on.
            rows = self._turns.filter(pk__in=keys).order_by("pk")
            locked = list(self.database.lock_rows(rows, wait=False))
            levels = {Level(row.queue_name, row.rank) for row in locked}
            passed = {level: reached(self.database.connection, level) for level in levels}
            idle = [
                row.pk for row in locked
                if valid_number(row.turn, 0.0, LARGEST, 0.0)
                <= passed[Level(row.queue_name, row.rank)]
            ]  # fmt: skip
            self._turns.filter(pk__in=idle)._raw_delete(self.using)
        return len(idle)
