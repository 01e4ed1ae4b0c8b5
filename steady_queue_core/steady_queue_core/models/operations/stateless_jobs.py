"""Jobs that have not ended, and have no row that says in which state they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import BooleanField, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery

from ...dialects import DependencyState, portable
from ...dialects.database import Database
from ..base import unfiltered
from ..batch import Dependency
from ..execution import (
    BlockedExecution,
    ClaimedExecution,
    Execution,
    FailedExecution,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)

#: Jobs that one look reads.
BATCH = 2_000
#: Jobs whose states one statement reads.
MOST_JUDGED = 500
#: How long a job has been enqueued, and due, before it may count as one without a state.
AGE = timedelta(minutes=5)
#: The process that has claimed the jobs that were found: none has this id.
NOBODY = 0

#: Most jobs that have not ended are in one of the first.
STATES: tuple[type[Execution], ...] = (
    ReadyExecution,
    ScheduledExecution,
    BlockedExecution,
    WaitingExecution,
    ClaimedExecution,
    FailedExecution,
)


class Look(NamedTuple):
    """What a look has found."""

    job_ids: list[int]
    #: The last job that it has read; ``None``: it has read the newest.
    last: int | None


class StatelessJobs:
    """The jobs of one database that have no state. Only statements in SQL, and databases that lose
    a part of a transaction, leave a job so; nothing would ever run it."""

    def __init__(self, using: str, jobs: QuerySet[Any]) -> None:
        self.using, self.jobs = using, unfiltered(jobs)
        self.database = Database.of(using)

    def look(self, after: int) -> Look:
        """Read the next jobs after the one with the id ``after``, ended ones too."""
        limit = portable.storable(self.database.current_time() - AGE)
        is_due = Q(scheduled_at=None) | Q(scheduled_at__lt=limit)
        is_old = Q(finished_at=None, enqueued_at__lt=limit) & is_due
        # Not a condition of the query: a planner might prefer an index on it to the order of ids.
        rows = self.jobs.annotate(
            is_old=ExpressionWrapper(is_old, output_field=BooleanField())
        ).order_by("pk")
        found = list(rows.filter(pk__gt=after).values_list("pk", "is_old")[:BATCH])
        old = [pk for pk, is_old in found if is_old]
        return Look(self.among(old), found[-1][0] if len(found) == BATCH else None)

    def among(self, job_ids: Sequence[int]) -> list[int]:
        """Return those of these jobs that have no state now."""
        parts = range(0, len(job_ids), MOST_JUDGED)
        return [pk for start in parts for pk in self._judged(job_ids[start : start + MOST_JUDGED])]

    def take(self, job_id: int) -> bool:
        """Give a job a state, unless it has one; return whether it had none.

        It is claimed by nobody, so that it ends like one whose process has gone; if there is
        something that it has to wait for, it waits again.
        """
        columns = ("queue_name", "rank", "token", "concurrency_key")
        with self.database.transaction():
            rows = self.jobs.filter(pk=job_id).only(*columns).order_by("pk")
            # Several may have found it. Only who has this lock gives it a state, and looks once
            # more: the job may have had one, and moved on, since it was found.
            locked = list(self.database.lock_rows(rows, wait=False))
            if not locked or not self._judged([job_id]):
                return False
            self._execution(locked[0]).save(using=self.using, force_insert=True)
        return True

    def _judged(self, job_ids: Sequence[int]) -> list[int]:
        """In one statement, for which a job that moves on is in the state before or after.

        A subquery for each row and not a join: a planner without statistics would read whole
        tables of executions.
        """
        rows = self.jobs.filter(pk__in=job_ids)
        for model in STATES:
            found = model._base_manager.using(self.using).filter(pk=OuterRef("pk"))
            name = f"in_{model._meta.model_name}"
            rows = rows.alias(**{name: Subquery(found.values("pk"))}).filter(
                **{f"{name}__isnull": True}
            )
        open_ended = ExpressionWrapper(Q(finished_at=None), output_field=BooleanField())
        found = rows.annotate(has_not_ended=open_ended).order_by("pk")
        return [pk for pk, left in found.values_list("pk", "has_not_ended") if left]

    def _execution(self, job: Any) -> Execution:
        columns = {
            "job_id": job.pk,
            "queue_name": job.queue_name,
            "rank": job.rank,
            "created_at": self.database.storable_time(),
        }
        dependencies = Dependency.objects.using(self.using).filter(job_id=job.pk)
        if dependencies.filter(state=DependencyState.OPEN).exists():
            return WaitingExecution(
                **columns,
                token=job.token,
                width=dependencies.count(),
                concurrency_key=job.concurrency_key,
            )
        token = portable.next_token(job.token)
        return ClaimedExecution(**columns, token=token, process_id=NOBODY)
