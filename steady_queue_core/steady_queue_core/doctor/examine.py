"""The examinations, of a whole queue and of one job."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from . import (
    access,
    busy_limits,
    claims,
    clock,
    database,
    failures,
    heartbeats,
    hosts,
    job,
    left_behind,
    limits,
    locks,
    permits,
    processes,
    queues,
    retention,
    scheduled,
    schedules,
    schema,
    settings,
    stops,
    threads,
    unknown_tasks,
)
from .finding import Finding, in_order
from .patient import Patient
from .round import findings_of

EXAMINATIONS = (
    *settings.EXAMINATIONS,
    *schema.EXAMINATIONS,
    *processes.EXAMINATIONS,
    *heartbeats.EXAMINATIONS,
    *threads.EXAMINATIONS,
    *queues.EXAMINATIONS,
    *scheduled.EXAMINATIONS,
    *schedules.EXAMINATIONS,
    *unknown_tasks.EXAMINATIONS,
    *claims.EXAMINATIONS,
    *limits.EXAMINATIONS,
    *permits.EXAMINATIONS,
    *busy_limits.EXAMINATIONS,
    *hosts.EXAMINATIONS,
    *failures.EXAMINATIONS,
    *clock.EXAMINATIONS,
    *retention.EXAMINATIONS,
    *left_behind.EXAMINATIONS,
    *stops.EXAMINATIONS,
    *database.EXAMINATIONS,
)


def examine(using: str) -> list[Finding]:
    """Return what is wrong with the queue in a database, the cause first; nothing if it is healthy.

    All reads are bounded. What cannot be examined is a finding, too.
    """
    patient = Patient(using)
    found = locks.ahead(patient, access.obstacles(using)) or findings_of(EXAMINATIONS, patient)
    return [replace(each, database=using) for each in in_order(found)]


def examine_job(job_id: int, using: str) -> list[Finding]:
    """Return why a job of a database has not run, or what has become of it, the cause first.

    The last finding of a job that exists says in which state it is.
    """
    patient = Patient(using)
    found = access.obstacles(using)
    found = found or findings_of((partial(job.readable_findings, job_id),), patient)
    found = locks.hidden(patient, found) or found
    return [replace(each, database=using) for each in in_order(found)]
