"""The examinations, of a whole queue and of one job."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from . import (
    access,
    claims,
    dispatchers,
    environment,
    failures,
    job,
    limits,
    next_jobs,
    processes,
    queues,
    schedules,
)
from .finding import Finding, in_order
from .patient import Patient, findings_of

#: In the order in which they read: what is wrong with the surroundings is known first.
EXAMINATIONS = (
    environment.system_checks,
    environment.missing_indexes,
    *processes.EXAMINATIONS,
    claims.held,
    queues.paused,
    queues.unserved,
    queues.slow,
    dispatchers.overdue,
    *schedules.EXAMINATIONS,
    next_jobs.unknown_tasks,
    claims.of_silent_processes,
    claims.without_process,
    claims.long_ones,
    *limits.EXAMINATIONS,
    limits.held_for_long,
    limits.full_queues,
    *failures.EXAMINATIONS,
    environment.skew,
    dispatchers.undone,
    environment.databases_left_behind,
    failures.shutdown_timeout,
    environment.observations,
)


def examine(using: str) -> list[Finding]:
    """Return what is wrong with the queue in a database, the cause first; nothing if it is healthy.

    All reads are bounded. What cannot be examined is a finding, too.
    """
    patient = Patient(using)
    found = access.ahead(patient, access.obstacles(using)) or findings_of(EXAMINATIONS, patient)
    return [replace(each, database=using) for each in in_order(found)]


def examine_job(job_id: int, using: str) -> list[Finding]:
    """Return why a job of a database has not run, or what has become of it, the cause first.

    The last finding of a job that exists says in which state it is.
    """
    patient = Patient(using)
    found = access.obstacles(using)
    found = found or findings_of((partial(job.readable_findings, job_id),), patient)
    found = access.hidden(patient, found) or found
    return [replace(each, database=using) for each in in_order(found)]
