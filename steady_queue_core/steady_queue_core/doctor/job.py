"""One job: which state it is in, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db import DatabaseError, InterfaceError

from ..configured_backends import backends_on, queue_databases
from ..errors import TaskCancelled, UnregisteredTaskError
from ..listings.damage import ERRORS, is_damage
from ..listings.wording import MOST_NAME, between, line, moment, name
from ..models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)
from ..tasks.metadata import JobMetadata
from . import job_waits
from .claims import remedy
from .finding import Finding, info, path_of, problem
from .patient import Patient
from .processes import described, silent_for

LARGE = ("arguments", "return_value", "worker_ids")


def of_claimed(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield who runs a job."""
    process = patient.process(row.process_id)
    since = f"{between(row.created_at, patient.present)} ago, at {moment(row.created_at)}"
    claimed = f"Job {job.pk} ({name(job.task_path)}) was claimed by {described(process)} {since}"
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
    # The findings of features are made of those of this package.
    from ..features.findings import FAILED

    if (of_feature := FAILED.get(path)) is not None:
        return [of_feature(when, moment(row.created_at))]
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


#: In the order in which most jobs pass through them: who moves on meanwhile is met later.
STATES: tuple[tuple[Any, Callable[[Patient, Job, Any], Iterable[Finding]]], ...] = (
    (WaitingExecution, job_waits.of_waiting),
    (ScheduledExecution, job_waits.of_scheduled),
    (BlockedExecution, job_waits.of_blocked),
    (ReadyExecution, job_waits.of_ready),
    (ClaimedExecution, of_claimed),
    (FailedExecution, of_failed),
)


def readable_findings(job_id: int, patient: Patient) -> list[Finding]:
    """Return what is to be said of a job, whatever somebody has written into its rows."""
    try:
        return list(findings(job_id, patient))
    except ERRORS as error:
        if not is_damage(error):
            raise
        said = f"{type(error).__name__}: {line(error)}"
        return [
            problem(
                "job-damaged",
                f"The rows of job {job_id} cannot be read ({said}): it will fail, or never run.",
                "Somebody has edited them. Restore their values, or discard the job in the admin.",
            )
        ]


def findings(job_id: int, patient: Patient) -> Iterator[Finding]:
    """Yield what is to be said of a job."""
    for _ in range(2):  # It may have moved against that order.
        job = Job.objects.using(patient.using).defer(*LARGE).filter(pk=job_id).first()
        if job is None:
            yield _unknown(job_id, patient)
            return
        for model, examine in STATES:
            row = model.objects.using(patient.using).filter(pk=job_id).first()
            if row is not None:
                yield from examine(patient, job, row)
                return
        if job.finished_at is not None:
            yield of_finished(job)
            return
    yield problem(
        "job-stateless",
        f"Job {job_id} has not ended, and no row says in which state it is: no worker can see it.",
        "Its execution was deleted or lost. A supervisor looks for such jobs again and again: it "
        "runs them again, or lets them fail with StateMissingError, so that they can be retried.",
    )


def _unknown(job_id: int, patient: Patient) -> Finding:
    for using in queue_databases():
        if using != patient.using and _has(using, job_id):
            alias = next(iter(backends_on(using)))
            return problem(
                "job-elsewhere",
                f'Job {job_id} is not in database "{patient.using}", but in "{using}".',
                f"Ask there: python manage.py steady_queue doctor {job_id} --backend {alias}",
            )
    return problem(
        "job-unknown",
        f'There is no job {job_id} in database "{patient.using}".',
        "It was never enqueued there (its transaction may have been rolled back, or is still "
        "open), was discarded, or has been deleted after its retention.",
    )


def _has(using: str, job_id: int) -> bool:
    try:
        return Job.objects.using(using).filter(pk=job_id).exists()
    except (DatabaseError, InterfaceError):
        return False
