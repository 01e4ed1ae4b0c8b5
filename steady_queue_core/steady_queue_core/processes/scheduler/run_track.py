"""What is known of the earlier runs of a recurring task that is counted, or does not overlap."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from ...dialects import portable
from ...errors import UnusableRecurringTaskError
from ...models import Job, RecurringExecution, RecurringTask
from ...schedules.stored import is_count
from ...schedules.values import RecurringDefinition

#: Columns that the runs of a task change.
COLUMNS = ("runs", "last_job_id", "waiting_at")


class RunTrack:
    """The columns of a task's row that its runs change.

    The row stays locked until the transaction ends, so that of several schedulers one at a time
    reads and changes them. Raises ``UnusableRecurringTaskError`` for a count that is none.
    """

    def __init__(self, using: str, definition: RecurringDefinition, row: Mapping[str, Any]) -> None:
        self.using, self.definition = using, definition
        self.runs: int = row["runs"]
        if not is_count(self.runs):
            raise UnusableRecurringTaskError(
                f"The recurring task {definition.key!r} cannot be run: its number of runs is "
                f"{self.runs!r}. Set the column runs of its row to a number from 0 on."
            )
        self._last_job_id = row["last_job_id"]
        self._waiting_at: datetime | None = row["waiting_at"]
        self._active_since: datetime | None = row["active_since"]

    @property
    def is_complete(self) -> bool:
        """Whether all runs were enqueued."""
        repeats = self.definition.repeats
        return repeats is not None and self.runs >= repeats

    @cached_property
    def live_job(self) -> int | None:
        """The job of the last run, if it has not ended."""
        if self.definition.overlap == "allow":
            return None
        last = self._last_job_id
        if last is None:
            # The task has just begun not to overlap. The last record may be that of this run.
            jobs = self._runs().order_by("-run_at").values_list("job_id", flat=True)[:2]
            last = next((job_id for job_id in jobs if job_id is not None), None)
        if last is None:
            return None
        live = Job.objects.using(self.using).filter(pk=last, finished_at=None)
        return live.values_list("pk", flat=True).first()

    @cached_property
    def waiting(self) -> datetime | None:
        """The slot that waits for the end of the last run.

        One that has waited until the task was disabled or changed is over, and so is one that has
        no record, or not the last one.
        """
        if self.definition.overlap != "queue" or self._waiting_at is None:
            return None
        waiting = portable.aware(self._waiting_at)
        if self._active_since is not None and waiting <= portable.aware(self._active_since):
            return None
        since = self._runs().filter(run_at__gte=self._waiting_at)
        found = list(since.values_list("run_at", "job_id")[:2])
        return waiting if found == [(self._waiting_at, None)] else None

    def wait(self, slot: datetime) -> None:
        """Have ``slot`` wait for the end of the last run."""
        self._update(waiting_at=portable.storable(slot), last_job_id=self.live_job)

    def skip(self) -> None:
        """Remember the last run, if only its record tells: those that are left out push it back."""
        if self._last_job_id is None:
            self._update(last_job_id=self.live_job)

    def count(self, job_id: int | None, *, is_new: bool) -> None:
        """Take down the job of a run; one that is not new belongs to another run as well."""
        changes: dict[str, Any] = {}
        if self.definition.repeats is not None and is_new:
            changes["runs"] = self.runs + 1
        if self.definition.overlap != "allow":
            changes |= {"last_job_id": job_id, "waiting_at": None}
        if changes:
            self._update(**changes)

    def _update(self, **changes: Any) -> None:
        RecurringTask.objects.using(self.using).filter(pk=self.definition.key).update(**changes)

    def _runs(self) -> QuerySet[RecurringExecution]:
        return RecurringExecution.objects.using(self.using).filter(task_key=self.definition.key)
