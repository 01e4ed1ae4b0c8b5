"""Deleting rows past their retention period, in bounded batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from ...dialects import portable
from ...dialects.database import Database
from ..base import unfiltered
from ..batch import BatchMember, JobBatch
from ..checkpoint import Checkpoint
from ..execution import FailedExecution
from ..recurring import RecurringExecution, RecurringTask
from ..retention import Retention
from ..step import Step

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

    def _without_own(self, keys: Iterable[int]) -> set[int]:
        """Return ``keys`` without those of jobs that are kept for a time of their own, or as long
        as their batch goes on."""
        kept = set(keys)
        own = Retention.objects.using(self.using).filter(pk__in=kept)
        return self._without_members(kept) - set(own.values_list("pk", flat=True))

    def _without_members(self, keys: Iterable[int]) -> set[int]:
        """Return ``keys`` without those of jobs whose batch goes on."""
        kept = set(keys)
        members = BatchMember.objects.using(self.using).filter(job_id__in=kept)
        batch_of = dict(members.values_list("job_id", "batch_id"))
        if not batch_of:
            return kept
        # No join: a planner without statistics would read all members of the batches that go on.
        batches = JobBatch.objects.using(self.using).filter(pk__in=set(batch_of.values()))
        open_ids = set(batches.filter(finished_at=None).values_list("pk", flat=True))
        return {pk for pk in kept if batch_of.get(pk) not in open_ids}

    def _delete_jobs(self, jobs: QuerySet[Any], job_ids: Sequence[int]) -> None:
        """Delete jobs, and what was stored beside them. Within a transaction."""
        unfiltered(jobs).filter(pk__in=job_ids)._raw_delete(self.using)
        Checkpoint.objects.using(self.using).filter(pk__in=job_ids)._raw_delete(self.using)
        Step.objects.using(self.using).filter(job_id__in=job_ids)._raw_delete(self.using)

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


class FinishedJobs(Sweep):
    """Those of ``jobs`` that finished before a point in time, oldest first, without failed ones."""

    def __init__(self, jobs: QuerySet[Any], before: datetime) -> None:
        super().__init__(jobs.db, before)
        self.jobs = jobs

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(unfiltered(self.jobs), "finished_at")

    def _delete(self, keys: Sequence[int]) -> int:
        failed = FailedExecution.objects.using(self.using).filter(pk__in=keys)
        well = self._without_own(set(keys) - set(failed.values_list("pk", flat=True)))
        chosen = self.jobs.filter(pk__in=well).order_by().values_list("pk", "finished_at")
        # Checked again: a job may just have been retried. Not a condition of the query, for which
        # the database might scan all old rows.
        found = [pk for pk, instant in chosen if instant is not None and instant < self.before]
        if not found:
            return 0
        rows = unfiltered(self.jobs).filter(pk__in=found).order_by("pk")
        with self.database.transaction():
            # Those that somebody else has locked have their turn in the next pass.
            free = [row.pk for row in self.database.lock_rows(rows.only("pk"), wait=False)]
            self._delete_jobs(self.jobs, free)
        return len(free)


class FailedJobs(Sweep):
    """Those of ``jobs`` that failed for good before a point in time, oldest first."""

    def __init__(self, jobs: QuerySet[Any], before: datetime) -> None:
        super().__init__(jobs.db, before)
        self.jobs = jobs

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._failed(), "created_at")

    def _delete(self, keys: Sequence[int]) -> int:
        found = self.jobs.filter(pk__in=keys).order_by().values_list("pk", flat=True)
        chosen = self._without_own(list(found))
        if not chosen:
            return 0
        rows = self._failed().filter(pk__in=chosen).order_by("pk")
        with self.database.transaction():
            # Rows that are being retried or discarded are skipped.
            locked = self.database.lock_rows(rows, wait=False)
            held = [row.pk for row in locked if row.created_at < self.before]
            self._failed().filter(pk__in=held)._raw_delete(self.using)
            self._delete_jobs(self.jobs, held)
        return len(held)

    def _failed(self) -> QuerySet[FailedExecution]:
        return FailedExecution.objects.using(self.using)


class RetainedJobs(Sweep):
    """The ended ones of ``jobs`` that were to be kept, by their task or call, until a point in
    time."""

    def __init__(self, jobs: QuerySet[Any], before: datetime) -> None:
        super().__init__(jobs.db, before)
        self.jobs = jobs

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._retentions(), "expires_at")

    def _delete(self, keys: Sequence[int]) -> int:
        failures = FailedExecution.objects.using(self.using)
        with self.database.transaction():
            # Who retries or discards a failed job locks its failure, then deletes this row: either
            # the row is gone, or the failure is locked and the job is left alone.
            rows = self._retentions().filter(pk__in=keys).order_by("pk")
            locked = self.database.lock_rows(rows, wait=False)
            due = self._without_members(
                row.pk for row in locked if row.expires_at and row.expires_at < self.before
            )
            failed = failures.filter(pk__in=due).order_by("pk")
            held = {row.pk for row in self.database.lock_rows(failed, wait=False)}
            held |= due - set(failed.values_list("pk", flat=True))
            ended = unfiltered(self.jobs).filter(pk__in=held).exclude(finished_at=None)
            found = list(ended.values_list("pk", flat=True))
            failures.filter(pk__in=found)._raw_delete(self.using)
            self._delete_jobs(self.jobs, found)
            # Also those whose job was deleted by somebody else.
            self._retentions().filter(pk__in=held)._raw_delete(self.using)
        return len(found)

    def _retentions(self) -> QuerySet[Retention]:
        return Retention.objects.using(self.using)


class Strays(Sweep):
    """What attempts have stored of jobs that are gone: whoever has deleted them did not know of it,
    such as a worker of an earlier version, or a statement in SQL."""

    model: type[Checkpoint] | type[Step]

    def __init__(self, using: str, jobs: QuerySet[Any]) -> None:
        super().__init__(using, NEVER)
        self.jobs = jobs

    def _past(self, rows: list[Any]) -> list[Any]:
        return rows

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        rows = self._rows()
        if self.position is not None:
            rows = rows.filter(pk__gt=self.position[0])
        return rows.order_by("pk").values_list("pk", "job_id")

    def _delete(self, keys: Sequence[int]) -> int:
        # A job exists before what it stores, and its id does not come again.
        known = unfiltered(self.jobs).filter(pk__in=set(keys))
        strays = set(keys) - set(known.values_list("pk", flat=True))
        return self._rows().filter(job_id__in=strays)._raw_delete(self.using) if strays else 0

    def _rows(self) -> QuerySet[Any]:
        return self.model._default_manager.using(self.using)


class StrayCheckpoints(Strays):
    """The checkpoints of jobs that are gone."""

    model = Checkpoint


class StraySteps(Strays):
    """The steps of jobs that are gone."""

    model = Step


class PastRuns(Sweep):
    """The runs of recurring tasks before a point in time, except the last run of each task that is
    there still, in a row or with one of the ``keys_in_code``: from it the next one is computed."""

    def __init__(self, using: str, before: datetime, keys_in_code: Collection[str] = ()) -> None:
        super().__init__(using, before)
        self.keys_in_code = frozenset(keys_in_code)
        self._any_past = False
        #: The primary key of the last run of each task that was looked up so far.
        self._last: dict[str, int | None] = {}

    def clear(self, batch_size: int) -> int:
        cleared = super().clear(batch_size)
        # Rows are stored roughly in the order of their due times: those that follow are younger.
        self.exhausted = self.exhausted or not self._any_past
        return cleared

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        runs = self._runs()
        if self.position is not None:
            runs = runs.filter(pk__gt=self.position[0])
        return runs.order_by("pk").values_list("pk")

    def _past(self, rows: list[Any]) -> list[Any]:
        return rows

    def _delete(self, keys: Sequence[int]) -> int:
        runs = self._runs()
        # The keys are all rows of this range.
        past = runs.filter(pk__range=(keys[0], keys[-1]), run_at__lt=self.before).order_by()
        tasks = dict(past.values_list("pk", "task_key"))
        self._any_past = bool(tasks)
        existing = self._existing(set(tasks.values()))
        kept = [pk for pk, key in tasks.items() if key in existing and pk == self._last_of(key)]
        if len(kept) == len(tasks):
            return 0
        with self.database.transaction():
            return past.exclude(pk__in=kept)._raw_delete(self.using)

    def _existing(self, task_keys: set[str]) -> set[str]:
        """Return those of the keys whose tasks are there."""
        others = task_keys - self.keys_in_code
        rows = RecurringTask.objects.using(self.using).filter(pk__in=others)
        stored = set(rows.values_list("pk", flat=True)) if others else set()
        return task_keys & self.keys_in_code | stored

    def _last_of(self, task_key: str) -> int | None:
        if task_key not in self._last:
            runs = self._runs().filter(task_key=task_key).order_by("-run_at")
            self._last[task_key] = runs.values_list("pk", flat=True).first()
        return self._last[task_key]

    def _runs(self) -> QuerySet[RecurringExecution]:
        return RecurringExecution.objects.using(self.using)
