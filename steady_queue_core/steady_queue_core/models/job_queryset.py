"""Operations on many jobs: retry, run now, move, cancel, discard, clear and so on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from django.db import models

from ..configuration.module_settings import module_setting
from ..dialects.database import Database
from .base import alters_data, unfiltered
from .execution import WAITING, ClaimedExecution, Execution, ReadyExecution
from .operations import cancel, discard, enqueue_copy, move, reschedule, retry, run_now
from .operations.clear import FinishedJobs
from .operations.walk import batches_of, without_successors

M = TypeVar("M", bound=models.Model)

#: Default number of rows per transaction.
BATCH = 500


class JobQuerySet(models.QuerySet[M]):
    """A queryset of jobs with operations that work in batches, each in its own transaction, on the
    database for writing unless ``using()`` names another.

    Like ``delete()``, they cannot be called after a slice, ``distinct(*fields)``, ``values()`` or
    ``union()``.
    """

    @alters_data
    def retry_failed(self, batch_size: int = BATCH) -> int:
        """Make failed jobs ready again, with all their attempts; return their number.

        The errors of earlier attempts are kept.
        """
        jobs = self._to_change("retry_failed", batch_size)
        batches = jobs._batches(retry.STATES, batch_size)
        return sum(retry.retry(unfiltered(jobs), ids) for ids in batches)

    @alters_data
    def run_now(self, batch_size: int = BATCH) -> int:
        """Dispatch scheduled jobs as if they were due, and unblock blocked jobs beyond their limit;
        return their number."""
        jobs = self._to_change("run_now", batch_size)
        batches = jobs._batches(run_now.STATES, batch_size)
        return sum(run_now.run_now(unfiltered(jobs), ids) for ids in batches)

    @alters_data
    def discard(self, batch_size: int = BATCH) -> int:
        """Delete ready, scheduled, blocked, waiting and failed jobs; return their number.

        Running and finished jobs are left alone.
        """
        jobs = self._to_change("discard", batch_size)
        batches = jobs._batches(discard.STATES, batch_size)
        return sum(discard.discard(unfiltered(jobs), ids) for ids in batches)

    @alters_data
    def cancel(self, batch_size: int = BATCH) -> int:
        """Let ready, scheduled, blocked and waiting jobs fail with ``TaskCancelled``, and ask
        running ones to end; return the number of both."""
        jobs = self._to_change("cancel", batch_size)
        waiting = jobs._batches(WAITING, batch_size)
        ended = sum(cancel.end(unfiltered(jobs), ids) for ids in waiting)
        running = jobs._batches((ClaimedExecution,), batch_size)
        return ended + sum(cancel.ask(unfiltered(jobs), ids) for ids in running)

    @alters_data
    def move_to(
        self,
        queue_name: str | None = None,
        *,
        priority: int | None = None,
        batch_size: int = BATCH,
    ) -> int:
        """Give ready, scheduled, blocked and waiting jobs another queue, another priority, or both;
        return their number. Running jobs, and those that have ended, are left alone.

        Raises ``ValueError`` for names and priorities that no job can have.
        """
        jobs = self._to_change("move_to", batch_size)
        changes = move.changes_of(queue_name, priority)
        batches = jobs._batches(move.STATES, batch_size)
        return sum(len(move.move(unfiltered(jobs), ids, changes)) for ids in batches)

    @alters_data
    def reschedule(self, run_after: datetime | timedelta, batch_size: int = BATCH) -> int:
        """Let ready, scheduled, blocked and waiting jobs be due at a time, or so long from now by
        the database's clock; return their number. Running jobs, and those that have ended, are left
        alone.

        Raises ``ValueError`` for a naive time, unless the project has no time zones.
        """
        jobs = self._to_change("reschedule", batch_size)
        due = reschedule.due_at(Database.of(jobs.db), run_after)
        batches = jobs._batches(reschedule.STATES, batch_size)
        return sum(len(reschedule.reschedule(unfiltered(jobs), ids, due)) for ids in batches)

    @alters_data
    def enqueue_copies(self, batch_size: int = BATCH) -> int:
        """Enqueue the calls of jobs again, whatever has become of these; return the number of new
        jobs.

        They become members of no batch. Jobs whose unique key another job has are left alone.
        """
        jobs = self._to_change("enqueue_copies", batch_size)
        batches = jobs._batches_of_present(batch_size)
        copied = (enqueue_copy.enqueue_copies(unfiltered(jobs), ids) for ids in batches)
        return sum(new.job_id is not None for each in copied for new in each.values())

    @alters_data
    def clear_finished_in_batches(
        self,
        batch_size: int = BATCH,
        finished_before: datetime | None = None,
        task_path: str | None = None,
        sleep_between_batches: float = 0.0,
    ) -> int:
        """Delete jobs that finished before a point in time; return their number. Failed jobs stay,
        and those with a ``retention`` of their own.

        ``finished_before`` is aware. By default it is ``clear_finished_jobs_after`` ago, by the
        database's clock. ``task_path`` limits the jobs to one task. ``sleep_between_batches`` is in
        seconds.
        """
        jobs = self._to_change("clear_finished_in_batches", batch_size)
        if task_path is not None:
            jobs = jobs.filter(task_path=task_path)
        finished = FinishedJobs(jobs, finished_before or _retention_limit(jobs.db))
        total = cleared = finished.clear(batch_size)
        while not finished.exhausted:
            time.sleep(sleep_between_batches if cleared else 0)
            cleared = finished.clear(batch_size)
            total += cleared
        return total

    def _to_change(self, name: str, batch_size: int) -> JobQuerySet[M]:
        """Return these jobs for writing. Raise TypeError if a slice, ``distinct()``, ``values()``
        or ``union()`` came before."""
        query: Any = self.query
        if query.combinator:
            raise TypeError(_refusal(name, f"{query.combinator}()"))
        if query.is_sliced:
            raise TypeError(_refusal(name, "a slice"))
        if query.distinct_fields:
            raise TypeError(_refusal(name, "distinct(*fields)"))
        if self._fields is not None:  # type: ignore[attr-defined]  # As Django's delete() does.
            raise TypeError(_refusal(name, "values() or values_list()"))
        if batch_size < 1:
            raise ValueError(f"{name}(): batch_size is {batch_size}; it must be at least 1.")
        jobs: Any = self.all()
        jobs._for_write = True
        jobs.query.select_for_update = False
        jobs.query.standard_ordering = True  # Of reverse(), which order_by() leaves.
        return cast("JobQuerySet[M]", jobs)

    def _batches(self, states: Sequence[type[Execution]], batch_size: int) -> Iterator[list[int]]:
        """Yield the ids of the jobs in each of these states, in ascending order; from the table of
        the state, which has no history."""
        for state in states:
            batches = batches_of(self, f"{state._meta.model_name}__pk", batch_size)
            if state is ReadyExecution:
                batches = without_successors(unfiltered(self), batches)
            yield from batches

    def _batches_of_present(self, batch_size: int) -> Iterator[list[int]]:
        """Yield the ids of the jobs, without those that are enqueued meanwhile."""
        newest = unfiltered(self).order_by("-pk").values_list("pk", flat=True).first() or 0
        return batches_of(self.filter(pk__lte=newest), "pk", batch_size)


def _refusal(name: str, after: str) -> str:
    return (
        f"{name}() cannot be called after {after}. Select the jobs by their ids first: "
        f"Job.objects.filter(pk__in=[...]).{name}()."
    )


def _retention_limit(using: str) -> datetime:
    period = cast("timedelta | None", module_setting("clear_finished_jobs_after"))
    if period is None:
        raise ValueError(
            "clear_finished_in_batches(): finished_before is required, because "
            "clear_finished_jobs_after is None and jobs are kept forever."
        )
    return Database.of(using).current_time() - period
