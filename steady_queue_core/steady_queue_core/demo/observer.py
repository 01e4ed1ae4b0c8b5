"""Prints what happens in the queue, by looking at its tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo

from django.utils import timezone

from ..dialects import portable
from ..models import FailedExecution, Job


class Observer:
    """Compares the jobs with what they were at the last look, and says what is new."""

    def __init__(self, zone: tzinfo, say: Callable[[str], object]) -> None:
        self._zone, self._say = zone, say
        #: Failed attempts seen, by job.
        self._failures: dict[int, int] = {}
        self._ended: set[int] = set()
        #: What was told of the progress of each job.
        self._told: dict[int, str] = {}
        #: Ids of jobs that ended well, by the last part of their task's path.
        self.done: dict[str, set[int]] = {}

    @property
    def ended(self) -> set[int]:
        """The ids of the jobs that have ended, well or not."""
        return self._ended

    def look(self) -> None:
        """Print a line for every event since the last look."""
        jobs = list(Job.objects.select_related("checkpoint").order_by("pk"))
        # Only now: a job that fails between the two is one that we have seen unfinished.
        failed = set(FailedExecution.objects.values_list("pk", flat=True))
        lines: list[tuple[datetime, str]] = []
        for job in jobs:
            if job.pk not in self._ended:
                lines += self._news(job, failed=job.pk in failed)
        for _, line in sorted(lines, key=lambda each: each[0]):
            self._say(line)

    def _news(self, job: Job, *, failed: bool) -> list[tuple[datetime, str]]:
        now, lines = timezone.now(), []
        if job.pk not in self._failures:
            self._failures[job.pk] = 0
            if job.scheduled_at is not None:
                pause = portable.aware(job.scheduled_at) - portable.aware(job.enqueued_at)
                detail = f"by {pause.total_seconds():g} s"
                lines.append(self._line(job.enqueued_at, "delayed", job, detail))
        told = str(job.progress or "")
        if told and told != self._told.get(job.pk):
            lines.append(self._line(now, "progress", job, told))
        self._told[job.pk] = told
        errors = json.loads(job.errors or "[]")
        most = abs(job.max_attempts)  # Negated by a cancellation.
        for attempt in range(self._failures[job.pk] + 1, len(errors) + 1):
            reason = errors[attempt - 1][1].strip().rpartition("\n")[2]
            if not (failed and attempt == len(errors)):
                detail = f"attempt {attempt} of {most}: {reason}"
                lines.append(self._line(now, "retry", job, detail))
        self._failures[job.pk] = len(errors)
        if job.finished_at is not None:
            self._ended.add(job.pk)
            if failed:
                detail = f"attempt {job.attempts} of {most}: {reason}"
                lines.append(self._line(job.finished_at, "failed", job, detail))
            else:
                self.done.setdefault(job.task_path.rpartition(".")[2], set()).add(job.pk)
                lines.append(self._line(job.finished_at, "done", job, f"{_milliseconds(job)} ms"))
        return lines

    def _line(self, at: datetime, word: str, job: Job, detail: str) -> tuple[datetime, str]:
        at = portable.aware(at)
        name = f"{job.task_path} #{job.pk}"
        shown = at.astimezone(self._zone)
        return at, f"  {shown:%H:%M:%S}  {word:<8} {name:<24} queue={job.queue_name:<8} {detail}"


def _milliseconds(job: Job) -> int:
    """How long the last attempt took, until its outcome was stored."""
    assert job.finished_at is not None
    assert job.last_attempted_at is not None
    took: timedelta = job.finished_at - job.last_attempted_at
    return max(0, round(took.total_seconds() * 1000))
