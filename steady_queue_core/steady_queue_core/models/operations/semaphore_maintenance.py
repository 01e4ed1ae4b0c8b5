"""Maintenance of concurrency limits: lost permits, and semaphores whose count is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from ...dialects import portable
from ...dialects.database import Database
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..execution import BlockedExecution, ClaimedExecution, ReadyExecution
from ..process import Process
from ..semaphore import Permit, Semaphore
from .rows import parts

logger = get_logger("steady_queue.dispatcher")

#: Keys per transaction: while it runs, their jobs can neither start nor end.
BATCH = 100


def least_duration(heartbeat: timedelta) -> timedelta:
    """Return how long the permits of running jobs are kept at least: for two ``heartbeat``s, since
    a process that lives may be silent for one, and a little more while it is busy."""
    return 2 * heartbeat


class SemaphoreMaintenance:
    """Repairs the concurrency limits of one database, in small transactions. Several may run at
    the same time."""

    def __init__(
        self,
        using: str,
        clock: Callable[[Database], datetime] = Database.current_time,
        heartbeat: timedelta = timedelta(seconds=60),
    ) -> None:
        """``clock`` reads the time by which processes have been silent for too long; they send a
        heartbeat each ``heartbeat``."""
        self.using, self.clock = using, clock
        self.least = least_duration(heartbeat)
        self.database = Database.of(using)

    def do(self) -> int:
        """Revoke expired permits, recount semaphores, and delete idle ones; return the number of
        jobs that were admitted."""
        admitted = self._each(self._expired().values(), self._revoke)
        admitted += self._each(self._miscounted(), self._recount)
        self._each(self._idle().values_list("pk", flat=True), self._delete_idle)
        if admitted:
            self.database.ring([])
        return admitted

    def _each(self, keys: Iterable[str], do: Callable[[Sequence[str]], int]) -> int:
        """Do something with all ``keys`` but those that the database refuses; return the sum."""
        total = 0
        for some in parts(sorted({*keys}), BATCH):
            done, refused = self.database.in_halves(some, do)
            total += done
            for key, error in refused.items():
                log_internal_error(
                    logger,
                    "The semaphore of %r could not be maintained: the database refused it",
                    key,
                    error=error,
                    extra=about("dispatcher.not_maintained"),
                )
        return total

    def _revoke(self, keys: Collection[str]) -> int:
        with self.database.transaction():
            keys = self._lock(keys)
            expired = self._expired(keys)  # Again: their jobs may have ended meanwhile.
            Permit.objects.using(self.using).filter(pk__in=list(expired))._raw_delete(self.using)
            return self._admit(keys)

    def _recount(self, keys: Collection[str]) -> int:
        with self.database.transaction():
            return self._admit(self._lock(keys))

    def _admit(self, keys: Sequence[str]) -> int:
        portable.recount(self.database.connection, keys)
        return self.database.admit(keys)

    def _lock(self, keys: Collection[str]) -> list[str]:
        """Lock semaphores; return the keys without those that somebody else has locked, which are
        looked at the next time: the others need not wait for them."""
        rows = Semaphore.objects.using(self.using).filter(pk__in=keys).order_by("pk")
        known = set(rows.values_list("pk", flat=True))
        locked = {row.pk for row in self.database.lock_rows(rows, wait=False)}
        return [key for key in sorted(keys) if key in locked or key not in known]

    def _expired(self, keys: Collection[str] | None = None) -> dict[int, str]:
        """Return the keys of permits that no longer count, by job: the job is neither ready nor
        claimed, or its process has been silent for too long."""
        permits = Permit.objects.using(self.using)
        if keys is not None:
            permits = permits.filter(key__in=keys)
        ready = ReadyExecution.objects.using(self.using).filter(pk=OuterRef("pk"))
        claimed = ClaimedExecution.objects.using(self.using).filter(pk=OuterRef("pk"))
        orphaned = permits.filter(~Exists(ready), ~Exists(claimed)).values_list("pk", "key")
        return {**dict(orphaned), **self._silent(permits)}

    def _silent(self, permits: QuerySet[Permit]) -> dict[int, str]:
        present = self.clock(self.database)
        beats = dict(Process.objects.using(self.using).values_list("pk", "last_heartbeat_at"))
        # A join, for there are few claims: subqueries would look for one of each permit.
        claimed = permits.filter(job__claimedexecution__process_id__isnull=False)
        running = claimed.values_list(
            "pk",
            "key",
            "job__concurrency_duration",
            "job__claimedexecution__created_at",
            "job__claimedexecution__process_id",
        )
        return {
            job_id: key
            for job_id, key, duration, claimed_at, process_id in running
            if portable.aware(max(claimed_at, beats.get(process_id, claimed_at)))
            + max(duration or self.least, self.least)
            < present
        }

    def _miscounted(self) -> set[str]:
        """Return the keys whose semaphore is missing or has a wrong count, or that have free
        permits and waiting jobs."""
        of_key = Permit.objects.using(self.using).filter(key=OuterRef("pk")).order_by()
        holders = of_key.values("key").annotate(number=Count("pk")).values("number")
        waiting = BlockedExecution.objects.using(self.using).filter(concurrency_key=OuterRef("pk"))
        semaphores = Semaphore.objects.using(self.using).annotate(
            left=F("limit") - Coalesce(Subquery(holders), Value(0))
        )
        wrong = semaphores.filter(~Q(value=F("left")) | Q(Exists(waiting), value__gt=0))
        existing = Semaphore.objects.using(self.using).filter(pk=OuterRef("concurrency_key"))
        stranded = BlockedExecution.objects.using(self.using).filter(~Exists(existing)).order_by()
        missing = stranded.values_list("concurrency_key", flat=True).distinct()
        return {*wrong.values_list("pk", flat=True), *missing}

    def _idle(self) -> QuerySet[Semaphore]:
        return Semaphore.objects.using(self.using).filter(value=F("limit"))

    def _delete_idle(self, keys: Collection[str]) -> int:
        with self.database.transaction():
            rows = self._idle().filter(pk__in=keys).order_by("pk")
            free = [row.pk for row in self.database.lock_rows(rows, wait=False)]
            self._idle().filter(pk__in=free)._raw_delete(self.using)
        return 0
