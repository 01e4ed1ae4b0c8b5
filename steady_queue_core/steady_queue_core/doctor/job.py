"""One job: which state it is in, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db import DatabaseError, InterfaceError

from ..configured_backends import backends_on, queue_databases
from ..listings.damage import ERRORS, is_damage
from ..listings.wording import line
from ..models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)
from . import job_ends, job_waits
from .finding import Finding, problem
from .patient import Patient

#: In the order in which most jobs pass through them: who moves on meanwhile is met later.
STATES: tuple[tuple[Any, Callable[[Patient, Job, Any], Iterable[Finding]]], ...] = (
    (WaitingExecution, job_waits.of_waiting),
    (ScheduledExecution, job_waits.of_scheduled),
    (BlockedExecution, job_waits.of_blocked),
    (ReadyExecution, job_waits.of_ready),
    (ClaimedExecution, job_ends.of_claimed),
    (FailedExecution, job_ends.of_failed),
)
LARGE = ("arguments", "return_value", "worker_ids")


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
            yield job_ends.of_finished(job)
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
