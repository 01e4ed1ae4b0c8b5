"""What can be done with many jobs at once: retry, run now, discard, clear."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Q

from .base import queue_database

#: Rows of one transaction, unless the caller says otherwise.
BATCH = 500


class JobQuerySet(models.QuerySet[Any]):
    """Jobs, and what can be done with them. All of it goes in batches, each one transaction."""

    def retry_failed(self, batch_size: int = BATCH) -> int:
        """Make those that have failed ready again, with all their attempts; return how many.

        Their errors so far are kept.
        """
        from . import failures

        return sum(
            failures.retry(self.db, keys) for keys in self._batches(failures.FAILED, batch_size)
        )

    def run_now(self, batch_size: int = BATCH) -> int:
        """Have those that are scheduled run now, as if they were due, and those that are blocked
        beyond their limit; return how many."""
        from . import dispatching

        return sum(
            dispatching.run_now(self.db, keys)
            for keys in self._batches(dispatching.WAITING, batch_size)
        )

    def discard(self, batch_size: int = BATCH) -> int:
        """Delete those that wait (ready, scheduled, blocked) or have failed; return how many.

        Leaves alone those that run, and those that have finished.
        """
        from . import discarding

        return sum(
            discarding.discard(self.db, keys)
            for keys in self._batches(discarding.DISCARDABLE, batch_size)
        )

    def clear_finished_in_batches(
        self,
        batch_size: int = BATCH,
        finished_before: datetime | None = None,
        task_path: str | None = None,
        sleep_between_batches: float = 0.0,
    ) -> int:
        """Delete jobs that finished before an instant; return how many. Failed ones stay.

        ``finished_before`` is aware; by default the setting ``clear_finished_jobs_after`` ago, by
        the database's clock. ``task_path`` restricts it to one task. ``sleep_between_batches`` is
        in seconds.
        """
        from .retention import FinishedJobs

        if finished_before is None:
            finished_before = self._keeping_since()
        where = Q() if task_path is None else Q(task_path=task_path)
        finished = FinishedJobs(self.db, finished_before, where)
        total = cleared = finished.clear(batch_size)
        while cleared >= batch_size:
            time.sleep(sleep_between_batches)
            cleared = finished.clear(batch_size)
            total += cleared
        return total

    def _keeping_since(self) -> datetime:
        import steady_queue_core

        connection, dialect = queue_database(self.db)
        period: timedelta = steady_queue_core.clear_finished_jobs_after
        return dialect.current_time(connection) - period

    def _batches(self, where: Q, batch_size: int) -> Iterator[list[int]]:
        """Yield the keys of the jobs, in the order of their ids, as they are at each batch."""
        jobs = self.filter(where).order_by("pk").values_list("pk", flat=True)
        last = 0
        while keys := list(jobs.filter(pk__gt=last)[:batch_size]):
            yield keys
            last = keys[-1]
