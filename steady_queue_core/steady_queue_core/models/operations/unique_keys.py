"""Deleting the rows of unique keys that no job has any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from ..unique_key import UniqueKey
from .clear import Sweep


class KeptKeys(Sweep):
    """The keys that jobs have kept for long enough."""

    def __init__(self, using: str, before: Any) -> None:
        super().__init__(using, before)
        self._keys = UniqueKey.objects.using(using)

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._keys, "expires_at")

    def _delete(self, keys: Sequence[Any]) -> int:
        with self.database.transaction():
            # Who is enqueueing with a key has locked it, and may give it to another job.
            rows = self._keys.filter(pk__in=keys).order_by("pk")
            locked = self.database.lock_rows(rows, wait=False)
            due = {
                row.pk: row.job_id
                for row in locked
                if row.expires_at is not None and row.expires_at < self.before
            }
            self.database.unique_keys.free(due)
        return len(due)


class LostKeys(Sweep):
    """The keys whose job is gone, or has ended: somebody has deleted or changed it in SQL, or
    deleted it while it was to keep its key."""

    def __init__(self, using: str, before: Any) -> None:
        super().__init__(using, before)
        self._keys = UniqueKey.objects.using(using)

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        rows = self._keys if self.position is None else self._keys.filter(pk__gt=self.position[0])
        return rows.order_by("pk").values_list("pk")

    def _past(self, rows: list[Any]) -> list[Any]:
        return rows

    def _delete(self, keys: Sequence[Any]) -> int:
        lost = list(self._lost(keys).values_list("pk", flat=True))
        if not lost:
            return 0
        with self.database.transaction():
            rows = self._keys.filter(pk__in=lost).order_by("pk")
            locked = {row.pk: row.job_id for row in self.database.lock_rows(rows, wait=False)}
            still = set(self._lost(list(locked)).values_list("pk", flat=True))
            self.database.unique_keys.free({key: locked[key] for key in still})
        return len(still)

    def _lost(self, keys: Sequence[Any]) -> QuerySet[UniqueKey]:
        # A key that is kept for some time has ``expires_at``: it goes when that is over.
        has_ended = Q(job__finished_at__isnull=False, expires_at=None)
        is_gone = Q(job__enqueued_at__isnull=True)
        return self._keys.filter(has_ended | is_gone, pk__in=keys)
