"""What can be done with many jobs at once: retry, run now, discard, clear."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from django.db import models

from ..configuration.module_settings import module_setting
from .base import alters_data, queue_database, unfiltered
from .execution import Execution
from .operations import discard, retry, run_now
from .operations.clear import FinishedJobs

#: Rows of one transaction, unless the caller says otherwise.
BATCH = 500


class JobQuerySet(models.QuerySet[Any]):
    """Jobs, and what can be done with them. All of it goes in batches, each one transaction, and
    to the database for writing, unless ``using()`` names another one.

    Like ``delete()``, none of it can be called after a slice, ``distinct(*fields)``, ``values()``
    or ``union()``.
    """

    @alters_data
    def retry_failed(self, batch_size: int = BATCH) -> int:
        """Make those that have failed ready again, with all their attempts; return how many.

        Their errors so far are kept.
        """
        jobs = self._to_change("retry_failed", batch_size)
        batches = jobs._batches(retry.STATES, batch_size)
        return sum(retry.retry(unfiltered(jobs), keys) for keys in batches)

    @alters_data
    def run_now(self, batch_size: int = BATCH) -> int:
        """Have those that are scheduled run now, as if they were due, and those that are blocked
        beyond their limit; return how many."""
        jobs = self._to_change("run_now", batch_size)
        batches = jobs._batches(run_now.STATES, batch_size)
        return sum(run_now.run_now(unfiltered(jobs), keys) for keys in batches)

    @alters_data
    def discard(self, batch_size: int = BATCH) -> int:
        """Delete those that wait (ready, scheduled, blocked) or have failed; return how many.

        Leaves alone those that run, and those that have finished.
        """
        jobs = self._to_change("discard", batch_size)
        batches = jobs._batches(discard.STATES, batch_size)
        return sum(discard.discard(unfiltered(jobs), keys) for keys in batches)

    @alters_data
    def clear_finished_in_batches(
        self,
        batch_size: int = BATCH,
        finished_before: datetime | None = None,
        task_path: str | None = None,
        sleep_between_batches: float = 0.0,
    ) -> int:
        """Delete those that finished before an instant; return how many. Failed ones stay.

        ``finished_before`` is aware; by default the setting ``clear_finished_jobs_after`` ago, by
        the database's clock. ``task_path`` restricts it to one task. ``sleep_between_batches`` is
        in seconds.
        """
        jobs = self._to_change("clear_finished_in_batches", batch_size)
        if task_path is not None:
            jobs = jobs.filter(task_path=task_path)
        finished = FinishedJobs(jobs, finished_before or _keeping_since(jobs.db))
        total = cleared = finished.clear(batch_size)
        while not finished.exhausted:
            time.sleep(sleep_between_batches if cleared else 0)
            cleared = finished.clear(batch_size)
            total += cleared
        return total

    def _to_change(self, name: str, batch_size: int) -> JobQuerySet:
        """Return these jobs as they are in the database for writing; raise TypeError where they
        are not all that a filter leaves."""
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
        return cast(JobQuerySet, jobs)

    def _batches(self, states: Sequence[type[Execution]], batch_size: int) -> Iterator[list[int]]:
        """Yield the keys of the jobs in each of these states, in the order of their ids, as they
        are at each batch. They are read from the table of the state, which has no history."""
        for state in states:
            place = f"{state._meta.model_name}__pk"
            jobs = self.order_by(place).values_list(place, flat=True)
            last = 0
            while keys := list(jobs.filter(**{f"{place}__gt": last})[:batch_size]):
                yield keys
                last = keys[-1]


def _refusal(name: str, after: str) -> str:
    return (
        f"{name}() cannot be called after {after}. Choose the jobs by their ids first: "
        f"Job.objects.filter(pk__in=[...]).{name}()."
    )


def _keeping_since(using: str) -> datetime:
    connection, dialect = queue_database(using)
    period = cast("timedelta | None", module_setting("clear_finished_jobs_after"))
    if period is None:
        raise ValueError(
            "clear_finished_in_batches(): finished_before is needed, since "
            "clear_finished_jobs_after is None and jobs are kept for ever."
        )
    return dialect.current_time(connection) - period
