"""Walking the rows of a table to delete those that need not be kept, in bounded batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from ...dialects import portable
from ...dialects.database import Database

#: For sweeps that do not ask for the age of rows.
NEVER = datetime.min.replace(tzinfo=UTC)


class Sweep(ABC):
    """Walks the rows older than a point in time, and deletes those that need not be kept.

    A batch reads a bounded number of rows in the order of an index, however large the tables are.
    The next one starts where it ended, so that rows that are kept are read only once.
    """

    def __init__(self, using: str, before: datetime) -> None:
        self.using = using
        self.database = Database.of(using)
        self.before = portable.storable(before)
        #: The last row that was read, from which another sweep may continue.
        self.position: Any = None
        self.exhausted = False
        #: The rows of the last batch that the database did not let go, and why.
        self.refused: dict[Any, Exception] = {}

    def clear(self, batch_size: int) -> int:
        """Read the next rows; return the number of those that were deleted."""
        rows = self._past(list(self._next_rows()[:batch_size]))
        keys = [row[-1] for row in rows]
        cleared, self.refused = self.database.in_halves(keys, self._delete) if keys else (0, {})
        self.position = rows[-1] if rows else self.position
        self.exhausted = len(rows) < batch_size
        return cleared

    def _past(self, rows: list[Any]) -> list[Any]:
        """Return the rows that are old enough. Not a condition of the query: PostgreSQL without
        statistics would expect few rows in the range, and sort all of them."""
        return [row for row in rows if row[0] < self.before]

    @abstractmethod
    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        """Return the rows after the position, each as its ordering columns, primary key last."""

    @abstractmethod
    def _delete(self, keys: Sequence[int]) -> int:
        """Delete those of these rows that need not be kept; return their number."""

    def _lock(self, rows: QuerySet[Any], keys: Sequence[Any]) -> list[Any]:
        """Lock those of the ``rows`` that nobody else has locked; return them. The others have
        their turn in the next pass."""
        chosen = rows.filter(pk__in=keys).order_by("pk")
        return list(self.database.lock_rows(chosen, wait=False))

    def _after(self, rows: QuerySet[Any], instant: str) -> QuerySet[Any, tuple[Any, ...]]:
        """Return the ``rows`` after the position, in the order of an indexed timestamp."""
        if self.position is None:
            rows = rows.filter(**{f"{instant}__isnull": False})
        else:
            last, pk = self.position
            # The first condition is the one that an index serves.
            later = Q(**{f"{instant}__gt": last}) | Q(pk__gt=pk)
            rows = rows.filter(later, **{f"{instant}__gte": last})
        return rows.order_by(instant, "pk").values_list(instant, "pk")


class KeySweep(Sweep):
    """Walks all ``rows``, whatever their age, in the order of their primary keys."""

    #: What is read of each row: its primary key first, and last what :meth:`_delete` is given.
    columns: tuple[str, ...] = ("pk",)

    def __init__(self, using: str, rows: QuerySet[Any], before: datetime = NEVER) -> None:
        super().__init__(using, before)
        self._rows = rows

    def _past(self, rows: list[Any]) -> list[Any]:
        return rows

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        rows = self._rows if self.position is None else self._rows.filter(pk__gt=self.position[0])
        return rows.order_by("pk").values_list(*self.columns)
