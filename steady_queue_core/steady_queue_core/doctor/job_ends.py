"""Jobs that run, have finished or have failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import TaskCancelled, TaskExpired, UnregisteredTaskError
from ..listings.wording import MOST_NAME, between, moment, name
from ..models import Job
from ..tasks.metadata import JobMetadata
from .claims import remedy
from .finding import Finding, info, path_of, problem
from .patient import Patient
from .processes import described, silent_for


def of_claimed(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield who runs a job."""
    process = next((each for each in patient.processes if each.pk == row.process_id), None)
    since = f"{between(row.created_at, patient.present)} ago, at {moment(row.created_at)}"
    who = "a process that is not registered" if process is None else described(process)
    claimed = f"Job {job.pk} ({name(job.task_path)}) was claimed by {who} {since}"
    if process is None:
        yield problem("claim-orphaned", f"{claimed}: it does not go on.", remedy(patient))
    elif not process.is_live:
        heard = silent_for(process)
        yield problem(
            "claim-stale",
            f"{claimed}, and that was heard {heard}: the job does not go on.",
            remedy(patient),
        )
    else:
        asked = " It was asked to end." if job.is_cancelled else ""
        yield info(
            "job-running",
            f"{claimed}, which was heard {silent_for(process)}; attempt {job.attempts + 1}.{asked}",
            "If it takes too long: kill -USR2 to its supervisor logs what it does. To end it: "
            f"{patient.command('cancel', job.pk)}",
        )


def of_finished(job: Job) -> Finding:
    """Return what there is to say of a job that has finished."""
    said = f"Job {job.pk} has finished at {moment(job.finished_at)}, in attempt {job.attempts}."
    discarded = JobMetadata.read(job.metadata).discarded
    if discarded is not None:
        said += f" Its task has discarded itself: {name(discarded)}"
    return info("job-finished", said)


def of_failed(patient: Patient, job: Job, row: Any) -> list[Finding]:
    """Return why a job has failed."""
    path = str(row.exception_class)
    when = f"Job {job.pk} ({name(job.task_path)})"
    if path == path_of(TaskCancelled):
        said = f"{when} was cancelled at {moment(row.created_at)}."
        remedy = f"If that was a mistake: {patient.command('retry', job.pk)}"
        return [problem("job-cancelled", said, remedy)]
    if path == path_of(TaskExpired):
        said = f"{when} had not started when it expired; that was noticed {moment(row.created_at)}."
        remedy = "See why jobs of its queue wait; raise expires for the task, or enqueue it again."
        return [problem("job-expired", said, remedy)]
    if path == path_of(UnregisteredTaskError):
        said = f"{when} has failed: no worker knew its task in time."
        remedy = (
            "Define the task under that name again, restart the workers, and then: "
            f"{patient.command('retry', job.pk)}"
        )
        return [problem("job-task-unknown", said, remedy)]
    used = f"after {job.attempts} of {abs(job.max_attempts)} attempts"
    error = f"{name(path)}: {first_line(row.message)}"
    return [
        problem(
            "job-failed",
            f"{when} has failed for good, {used}, with {error}",
            f"Once the cause is mended: {patient.command('retry', job.pk)}",
        ),
    ]


def first_line(message: object) -> str:
    """Return the first line of an error, printable."""
    lines = str(message).strip().splitlines()
    return name(lines[0][: 2 * MOST_NAME]) if lines else "(no message)"
