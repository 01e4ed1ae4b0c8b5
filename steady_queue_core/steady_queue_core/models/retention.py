"""Clearing what has finished, in bounded batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from ..dialects import portable
from .base import queue_database
from .execution import FailedExecution
from .job import Job
from .recurring import RecurringExecution


@dataclass
class FinishedJobs:
    """The jobs of a database that ended well before an instant, oldest first.

    Failed jobs are never among them. Where the last batch ended the next one begins, so that what
    lies between, such as ten thousand failed jobs, is read once.
    """

    using: str
    before: datetime
    #: Further conditions, such as on the backend or the task.
    where: Q = field(default_factory=Q)
    _last: tuple[datetime | None, int] | None = None

    def clear(self, batch_size: int) -> int:
        """Delete up to ``batch_size`` of them; return how many. Less: there are no more."""
        connection, dialect = queue_database(self.using)
        found = list(self._rows()[:batch_size])
        if found:
            self._last = found[-1].finished_at, found[-1].pk
            jobs = Job.objects.using(self.using).filter(pk__in=[job.pk for job in found])
            with dialect.transaction(connection):
                jobs._raw_delete(self.using)
        return len(found)

    def _rows(self) -> QuerySet[Job]:
        failed = FailedExecution.objects.using(self.using).filter(job_id=OuterRef("pk"))
        rows = Job.objects.using(self.using).filter(
            self.where, ~Exists(failed), finished_at__lt=portable.storable(self.before)
        )
        if self._last is not None:
            finished_at, pk = self._last
            # The first condition is the one that an index serves.
            rows = rows.filter(
                Q(finished_at__gt=finished_at) | Q(pk__gt=pk), finished_at__gte=finished_at
            )
        return rows.only("pk", "finished_at").order_by("finished_at", "pk")


@dataclass
class PastSlots:
    """The slots of schedules before an instant, but for each schedule's last one: the next slot
    follows from that."""

    using: str
    before: datetime

    def clear(self, batch_size: int) -> int:
        """Delete up to ``batch_size`` of them; return how many. Less: there are no more."""
        connection, dialect = queue_database(self.using)
        slots = RecurringExecution.objects.using(self.using)
        later = slots.filter(task_key=OuterRef("task_key"), run_at__gt=OuterRef("run_at"))
        past = slots.filter(Exists(later), run_at__lt=portable.storable(self.before))
        found = list(past.values_list("pk", flat=True)[:batch_size])
        if found:
            with dialect.transaction(connection):
                slots.filter(pk__in=found)._raw_delete(self.using)
        return len(found)
