"""Deleting jobs, and records of what has been, past their retention periods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from ..base import unfiltered
from ..batch import BatchMember, JobBatch
from ..checkpoint import Checkpoint
from ..execution import FailedExecution
from ..process_end import ProcessEnd
from ..recurring import RecurringExecution, RecurringTask
from ..retention import Retention
from ..step import Step
from .rows import delete_jobs
from .sweep import KeySweep, Sweep

#: For how long the end of a process is kept, and how many at the most.
KEPT, MOST = timedelta(days=14), 2_000


class JobSweep(Sweep):
    """Walks some of ``jobs`` that ended before a point in time, oldest first."""

    def __init__(self, jobs: QuerySet[Any], before: datetime) -> None:
        super().__init__(jobs.db, before)
        self.jobs = jobs
        self._failures = FailedExecution.objects.using(jobs.db)
        self._retentions = Retention.objects.using(jobs.db)

    def _without_own(self, keys: Iterable[int]) -> set[int]:
        """Return ``keys`` without those of jobs that are kept for a time of their own, or as long
        as their batch goes on."""
        kept = set(keys)
        own = self._retentions.filter(pk__in=kept)
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


class FinishedJobs(JobSweep):
    """Those of ``jobs`` that finished before a point in time, oldest first, without failed ones."""

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(unfiltered(self.jobs), "finished_at")

    def _delete(self, keys: Sequence[int]) -> int:
        failed = self._failures.filter(pk__in=keys)
        well = self._without_own(set(keys) - set(failed.values_list("pk", flat=True)))
        chosen = self.jobs.filter(pk__in=well).order_by().values_list("pk", "finished_at")
        # Checked again: a job may just have been retried. Not a condition of the query, for which
        # the database might scan all old rows.
        found = [pk for pk, instant in chosen if instant is not None and instant < self.before]
        if not found:
            return 0
        jobs = unfiltered(self.jobs)
        with self.database.transaction():
            free = [row.pk for row in self._lock(jobs.only("pk"), found)]
            delete_jobs(jobs, free)
        return len(free)


class FailedJobs(JobSweep):
    """Those of ``jobs`` that failed for good before a point in time, oldest first."""

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._failures, "created_at")

    def _delete(self, keys: Sequence[int]) -> int:
        found = self.jobs.filter(pk__in=keys).order_by().values_list("pk", flat=True)
        chosen = self._without_own(list(found))
        if not chosen:
            return 0
        with self.database.transaction():
            # Rows that are being retried or discarded are skipped.
            locked = self._lock(self._failures, list(chosen))
            held = [row.pk for row in locked if row.created_at < self.before]
            self._failures.filter(pk__in=held)._raw_delete(self.using)
            delete_jobs(unfiltered(self.jobs), held)
        return len(held)


class RetainedJobs(JobSweep):
    """The ended ones of ``jobs`` that were to be kept, by their task or call, until a point in
    time."""

    def _next_rows(self) -> QuerySet[Any, tuple[Any, ...]]:
        return self._after(self._retentions, "expires_at")

    def _delete(self, keys: Sequence[int]) -> int:
        with self.database.transaction():
            # Who retries or discards a failed job locks its failure, then deletes this row: either
            # the row is gone, or the failure is locked and the job is left alone.
            locked = self._lock(self._retentions, keys)
            due = self._without_members(
                row.pk for row in locked if row.expires_at and row.expires_at < self.before
            )
            held = {row.pk for row in self._lock(self._failures, list(due))}
            failed = self._failures.filter(pk__in=due)
            held |= due - set(failed.values_list("pk", flat=True))
            jobs = unfiltered(self.jobs)
            ended = jobs.filter(pk__in=held).exclude(finished_at=None)
            found = list(ended.values_list("pk", flat=True))
            self._failures.filter(pk__in=found)._raw_delete(self.using)
            delete_jobs(jobs, found)
            # Also those whose job was deleted by somebody else.
            self._retentions.filter(pk__in=held)._raw_delete(self.using)
        return len(found)


class Strays(KeySweep):
    """What attempts have stored of jobs that are gone: whoever has deleted them did not know of it,
    such as a worker of an earlier version, or a statement in SQL."""

    model: type[Checkpoint] | type[Step]
    columns = ("pk", "job_id")

    def __init__(self, using: str, jobs: QuerySet[Any]) -> None:
        super().__init__(using, self.model._default_manager.using(using))
        self.jobs = jobs

    def _delete(self, keys: Sequence[int]) -> int:
        # A job exists before what it stores, and its id does not come again.
        known = unfiltered(self.jobs).filter(pk__in=set(keys))
        strays = set(keys) - set(known.values_list("pk", flat=True))
        return self._rows.filter(job_id__in=strays)._raw_delete(self.using) if strays else 0


class StrayCheckpoints(Strays):
    """The checkpoints of jobs that are gone."""

    model = Checkpoint


class StraySteps(Strays):
    """The steps of jobs that are gone."""

    model = Step


class PastRuns(KeySweep):
    """The runs of recurring tasks before a point in time, except the last run of each task that is
    there still, in a row or with one of the ``keys_in_code``: from it the next one is computed."""

    def __init__(self, using: str, before: datetime, keys_in_code: Collection[str] = ()) -> None:
        super().__init__(using, RecurringExecution.objects.using(using), before)
        self.keys_in_code = frozenset(keys_in_code)
        self._any_past = False
        #: The primary key of the last run of each task that was looked up so far.
        self._last: dict[str, int | None] = {}

    def clear(self, batch_size: int) -> int:
        cleared = super().clear(batch_size)
        # Rows are stored roughly in the order of their due times: those that follow are younger.
        self.exhausted = self.exhausted or not self._any_past
        return cleared

    def _delete(self, keys: Sequence[int]) -> int:
        # The keys are all rows of this range.
        past = self._rows.filter(pk__range=(keys[0], keys[-1]), run_at__lt=self.before).order_by()
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
            runs = self._rows.filter(task_key=task_key).order_by("-run_at")
            self._last[task_key] = runs.values_list("pk", flat=True).first()
        return self._last[task_key]


class PastEnds(Sweep):
    """The oldest ends of processes. A worker that dies again and again must not fill the table."""

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
