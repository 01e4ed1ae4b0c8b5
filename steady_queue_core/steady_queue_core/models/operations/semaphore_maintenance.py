"""Maintenance of concurrency limits: lost permits, and semaphores whose count is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Greatest

from ...dialects import portable
from ..base import queue_database
from ..execution import BlockedExecution, ClaimedExecution, ReadyExecution
from ..process import Process
from ..semaphore import Permit, Semaphore, lock_semaphores

#: Keys of one transaction: as long as it takes, their jobs can neither start nor end.
BATCH = 100


class SemaphoreMaintenance:
    """Of the concurrency limits in one database. All of it is done in small transactions, and
    does no harm beside others that do the same."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.connection, self.dialect = queue_database(using)

    def do(self) -> int:
        """Revoke, repair and forget what there is; return how many jobs were let in."""
        admitted = sum(self._revoke(keys) for keys in _batches(self._lapsed().values()))
        for keys in _batches(self._doubtful()):
            admitted += self.dialect.admit(self.connection, sorted(keys))
        for keys in _batches(self._idle().values_list("pk", flat=True)):
            self._forget(keys)
        if admitted:
            self.dialect.ring(self.connection, [])
        return admitted

    def _revoke(self, keys: Collection[str]) -> int:
        with self.dialect.transaction(self.connection):
            lock_semaphores(self.connection, self.dialect, keys)
            lapsed = self._lapsed(keys)  # Once more: meanwhile they may have ended.
            Permit.objects.using(self.using).filter(pk__in=list(lapsed))._raw_delete(self.using)
            return self.dialect.admit(self.connection, sorted(keys))

    def _lapsed(self, keys: Collection[str] | None = None) -> dict[int, str]:
        """Return the keys of the permits that count no longer, by job: their job neither waits in
        a queue nor runs, or its process has been silent for too long."""
        permits = Permit.objects.using(self.using)
        if keys is not None:
            permits = permits.filter(key__in=keys)
        ready = ReadyExecution.objects.using(self.using).filter(pk=OuterRef("pk"))
        claimed = ClaimedExecution.objects.using(self.using).filter(pk=OuterRef("pk"))
        astray = permits.filter(~Exists(ready), ~Exists(claimed)).values_list("pk", "key")
        return {**dict(astray), **self._silent(permits)}

    def _silent(self, permits: QuerySet[Permit]) -> dict[int, str]:
        present = self.dialect.current_time(self.connection)
        beats = dict(Process.objects.using(self.using).values_list("pk", "last_heartbeat_at"))
        claim = ClaimedExecution.objects.using(self.using).filter(pk=OuterRef("pk"))
        claimed = permits.annotate(
            claimed_at=Subquery(claim.values("created_at")),
            process_id=Subquery(claim.values("process_id")),
        ).filter(process_id__isnull=False)
        running = claimed.values_list(
            "pk", "key", "job__concurrency_duration", "claimed_at", "process_id"
        )
        return {
            job_id: key
            for job_id, key, duration, claimed_at, process_id in running
            if portable.aware(max(claimed_at, beats.get(process_id, claimed_at)))
            + (duration or timedelta(0))
            < present
        }

    def _doubtful(self) -> set[str]:
        """Return keys whose semaphore errs, or leaves permits to nobody while somebody waits."""
        of_key = Permit.objects.using(self.using).filter(key=OuterRef("pk")).order_by()
        holders = of_key.values("key").annotate(number=Count("pk")).values("number")
        waiting = BlockedExecution.objects.using(self.using).filter(concurrency_key=OuterRef("pk"))
        semaphores = Semaphore.objects.using(self.using).annotate(
            left=Greatest(F("limit") - Coalesce(Subquery(holders), Value(0)), Value(0))
        )
        erring = semaphores.filter(~Q(value=F("left")) | Q(Exists(waiting), value__gt=0))
        known = Semaphore.objects.using(self.using).filter(pk=OuterRef("concurrency_key"))
        stranded = BlockedExecution.objects.using(self.using).filter(~Exists(known)).order_by()
        missing = stranded.values_list("concurrency_key", flat=True).distinct()
        return {*erring.values_list("pk", flat=True), *missing}

    def _idle(self) -> QuerySet[Semaphore]:
        return Semaphore.objects.using(self.using).filter(value=F("limit"))

    def _forget(self, keys: Collection[str]) -> None:
        with self.dialect.transaction(self.connection):
            rows = self._idle().filter(pk__in=keys).order_by("pk")
            free = [row.pk for row in self.dialect.lock_rows(self.connection, rows, wait=False)]
            self._idle().filter(pk__in=free)._raw_delete(self.using)


def _batches(keys: Iterable[str]) -> Iterator[list[str]]:
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]
