"""Scheduled jobs: due later, overdue, put off by a rate limit, or to be retried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialects import portable
from ..listings.wording import duration, moment, name
from ..models import Job
from ..tasks.metadata import JobMetadata
from ..tasks.results import errors_of
from . import job_task, scheduled
from .finding import Finding, info, problem
from .patient import LATE, Patient
from .processes import none_alive


def findings(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield when a job is due, and why then."""
    due = portable.aware(row.due_at)
    left = due - patient.present
    when = f"it is due in {duration(left)}, at {moment(due)}"
    if left <= -LATE:
        when = f"it has been due for {duration(-left)}, since {moment(due)}"
        yield from _overdue(patient, job)
    elif not patient.live("dispatcher"):
        yield scheduled.missing(f"Job {job.pk} is scheduled, and no dispatcher is alive for it.")
    yield from job_task.findings(patient, job)
    yield _state(patient, job, when)


def _overdue(patient: Patient, job: Job) -> Iterator[Finding]:
    if not patient.is_alive:
        yield from none_alive(patient)
    elif not patient.live("dispatcher"):
        yield scheduled.missing(f"Job {job.pk} is overdue, and no dispatcher is alive for it.")
    else:
        yield problem(
            "job-overdue",
            f"Job {job.pk} is overdue, although a dispatcher is alive.",
            "See in the log of the dispatcher what it fails at, and whether other processes hold "
            "locks on the tables of the queue for long.",
        )


def _state(patient: Patient, job: Job, when: str) -> Finding:
    metadata = JobMetadata.read(job.metadata)
    if metadata.rate_limit is not None and metadata.slot_of(job.attempts) is not None:
        rate = metadata.rate_limit
        return info(
            "job-rate-limited",
            f"Job {job.pk} waits for its slot: the key {name(rate.key)!r} has {rate.to} starts in "
            f"{duration(rate.per)}; {when}.",
            "Raise the limit if that is too slow, or give urgent jobs another key.",
        )
    errors = errors_of(job.errors)
    if job.attempts and errors:
        return info(
            "job-retry",
            f"Job {job.pk} waits for attempt {job.attempts + 1} of {abs(job.max_attempts)}, after "
            f"{name(errors[-1][0])}; {when}.",
            f"It runs by itself then. To have it run at once: {patient.command('run-now', job.pk)}",
        )
    put_off = " It has put itself off." if metadata.snoozes else ""
    return info("job-scheduled", f"Job {job.pk} is scheduled; {when}.{put_off}")
