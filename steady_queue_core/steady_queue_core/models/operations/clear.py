"""Clearing what is kept no longer, in bounded batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from ...dialects import portable
from ..base import queue_database, unfiltered
from ..execution import FailedExecution
from ..recurring import RecurringExecution


class Sweep(ABC):
    """Goes through rows that are older than an instant, and deletes those that are not kept.

    A batch reads a bounded number of rows, in the order of an index, whatever else the tables
    hold. The next one begins where it has ended, so that what stays is read once.
    """

    def __init__(self, using: str, before: datetime) -> None:
        self.using = using
        self.connection, self.dialect = queue_database(using)
        self.before = portable.storable(before)
        #: The last row that was looked at: another sweep may begin there.
        self.position: Any = None
        self.exhausted = False

    def clear(self, batch_size: int) -> int:
        """Look at the next rows; return how many of them were deleted."""
        rows = self._past(list(self._next_rows()[:batch_size]))
        cleared = self._delete([row[-1] for row in rows]) if rows else 0
        self.position = rows[-1] if rows else self.position
        self.exhausted = len(rows) < batch_size
        return cleared

    def _past(self, rows: list[Any]) -> list[Any]:
        """Return those that are old enough. Not by a condition: before it knows its tables,
        PostgreSQL would take few rows to lie between two instants, and sort them all."""
        return [row for row in rows if row[0] < self.before]

    @abstractmethod
    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        """Return the rows after the position, each as what orders them, the key last."""

    @abstractmethod
    def _delete(self, keys: Sequence[int]) -> int:
        """Delete those of these rows that are not kept."""

    def _after(self, rows: QuerySet[Any], instant: str) -> QuerySet[Any, tuple[Any, ...]]:
        """Return those of ``rows`` after the position, in the order of an indexed instant."""
        if self.position is None:
            rows = rows.filter(**{f"{instant}__isnull": False})
        else:
            last, pk = self.position
            # The first condition is the one that an index serves.
            later = Q(**{f"{instant}__gt": last}) | Q(pk__gt=pk)
            rows = rows.filter(later, **{f"{instant}__gte": last})
        return rows.order_by(instant, "pk").values_list(instant, "pk")


class FinishedJobs(Sweep):
    """Those of some jobs that ended well before an instant, oldest first. Never failed ones."""

    def __init__(self, jobs: QuerySet[Any], before: datetime) -> None:
        super().__init__(jobs.db, before)
        self.jobs = jobs

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(unfiltered(self.jobs), "finished_at")

    def _delete(self, keys: Sequence[int]) -> int:
        failed = FailedExecution.objects.using(self.using).filter(pk__in=keys)
        well = set(keys) - set(failed.values_list("pk", flat=True))
        chosen = self.jobs.filter(pk__in=well).order_by().values_list("pk", "finished_at")
        # Once more: one that has just been retried is none of them. Not by a condition, for which
        # a database might go through all that is old.
        found = [pk for pk, instant in chosen if instant is not None and instant < self.before]
        if found:
            with self.dialect.transaction(self.connection):
                unfiltered(self.jobs).filter(pk__in=found)._raw_delete(self.using)
        return len(found)


class FailedJobs(Sweep):
    """Those of some jobs that failed for good before an instant, oldest first."""

    def __init__(self, jobs: QuerySet[Any], before: datetime) -> None:
        super().__init__(jobs.db, before)
        self.jobs = jobs

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._failed(), "created_at")

    def _delete(self, keys: Sequence[int]) -> int:
        chosen = list(self.jobs.filter(pk__in=keys).order_by().values_list("pk", flat=True))
        if not chosen:
            return 0
        rows = self._failed().filter(pk__in=chosen).order_by("pk")
        with self.dialect.transaction(self.connection):
            # Those that somebody retries or discards just now are left to them.
            locked = self.dialect.lock_rows(self.connection, rows, wait=False)
            held = [row.pk for row in locked if row.created_at < self.before]
            self._failed().filter(pk__in=held)._raw_delete(self.using)
            unfiltered(self.jobs).filter(pk__in=held)._raw_delete(self.using)
        return len(held)

    def _failed(self) -> QuerySet[FailedExecution]:
        return FailedExecution.objects.using(self.using)


class PastSlots(Sweep):
    """The slots of schedules before an instant, but for each schedule's last one: the next slot
    follows from that."""

    def __init__(self, using: str, before: datetime) -> None:
        super().__init__(using, before)
        self._any_past = False
        #: The key of each schedule's last slot, as far as it has been looked for.
        self._last: dict[str, int | None] = {}

    def clear(self, batch_size: int) -> int:
        cleared = super().clear(batch_size)
        # They were stored in the order of their instants, more or less: what follows is younger.
        self.exhausted = self.exhausted or not self._any_past
        return cleared

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        slots = self._slots()
        if self.position is not None:
            slots = slots.filter(pk__gt=self.position[0])
        return slots.order_by("pk").values_list("pk")

    def _past(self, rows: list[Any]) -> list[Any]:
        return rows

    def _delete(self, keys: Sequence[int]) -> int:
        slots = self._slots()
        # These are all that lie between them.
        past = slots.filter(pk__range=(keys[0], keys[-1]), run_at__lt=self.before).order_by()
        schedules = dict(past.values_list("pk", "task_key"))
        self._any_past = bool(schedules)
        kept = [pk for pk, schedule in schedules.items() if pk == self._last_of(schedule)]
        if len(kept) == len(schedules):
            return 0
        with self.dialect.transaction(self.connection):
            return past.exclude(pk__in=kept)._raw_delete(self.using)

    def _last_of(self, schedule: str) -> int | None:
        if schedule not in self._last:
            slots = self._slots().filter(task_key=schedule).order_by("-run_at")
            self._last[schedule] = slots.values_list("pk", flat=True).first()
        return self._last[schedule]

    def _slots(self) -> QuerySet[RecurringExecution]:
        return RecurringExecution.objects.using(self.using)
