"""Whether the task of a job is there, and the job may still start."""

from __future__ import annotations

from collections.abc import Iterator

from ..dialects import portable
from ..listings import wording
from ..listings.wording import duration, moment, name
from ..models import Job
from ..processes.worker.unknown_tasks import left_since
from ..tasks.metadata import JobMetadata
from .finding import Finding, problem
from .patient import Patient


def findings(patient: Patient, job: Job) -> Iterator[Finding]:
    """Yield why no worker will run the task of a job that has not started."""
    yield from _expired(patient, job)
    path = name(job.task_path)
    since = left_since(job.errors)
    if not patient.knows(job.task_path):
        failure = f" {wording.line(patient.import_failure)}" if patient.import_failure else ""
        yield problem(
            "job-task-unknown",
            f"Job {job.pk} names the task {path}, which this project does not have.{failure}",
            "Define it with @task in the tasks.py of an installed app, or name its module in "
            "STEADY_QUEUE['task_modules'], and restart the workers. If it was renamed, keep the "
            "old name until its jobs are done.",
        )
    elif since is not None:
        yield problem(
            "job-task-unknown",
            f"Job {job.pk} names the task {path}, which is known here, but workers have not found "
            f"it since {moment(since)}.",
            "Restart the workers: they run code from before the task was there.",
        )


def _expired(patient: Patient, job: Job) -> Iterator[Finding]:
    if job.started_at is not None:
        return
    deadline = JobMetadata.read(job.metadata).deadline(portable.aware(job.enqueued_at))
    if deadline is not None and deadline <= patient.present:
        yield problem(
            "job-expired",
            f"Job {job.pk} has expired {duration(patient.present - deadline)} ago, before it has "
            "started: it will fail as soon as a worker claims it.",
            "Enqueue the task again, with a later expires, once it can run.",
        )
