"""Inserting jobs with their first executions: one statement, however many jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, NewJob

from .clock import read, to_microseconds, to_text
from .enqueue_sql import ENQUEUE, ENQUEUE_LIMITED, ENQUEUE_READY
from .permits import admit_locked, discard_refused, set_limits
from .statements import fetch
from .transactions import transaction


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    if not jobs:
        return []
    given = json.dumps([_given(place, job) for place, job in enumerate(jobs)])
    if any(job.limit is not None for job in jobs):
        return _enqueue_limited(connection, jobs, given)
    timed = any(job.run_at is not None or job.delay is not None for job in jobs)
    rows = fetch(connection, ENQUEUE if timed else ENQUEUE_READY, {"jobs": given})
    # Rows come back in any order, but the ids were given out in the order of the jobs.
    return [EnqueuedJob(job_id, read(enqueued_at)) for job_id, enqueued_at in sorted(rows)]


def _enqueue_limited(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob], given: str
) -> list[EnqueuedJob]:
    limits = [job.limit for job in jobs if job.limit is not None]
    by_key = {limit.key: limit.to for limit in limits}
    if len(by_key) == len(limits):
        enqueued, changes = _insert(connection, jobs, given, takes=True)
        if changes:
            with transaction(connection):
                _admit(connection, by_key)
        return enqueued
    with transaction(connection):
        enqueued, _ = _insert(connection, jobs, given, takes=False)
        _admit(connection, by_key)
        if not any(limit.discards for limit in limits):
            return enqueued
        gone = discard_refused(connection, [job_id for job_id, _ in enqueued if job_id is not None])
    return [new._replace(job_id=None) if new.job_id in gone else new for new in enqueued]


def _insert(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob], given: str, *, takes: bool
) -> tuple[list[EnqueuedJob], bool]:
    """Insert jobs, of which those with a limit are blocked, unless each ``takes`` a permit first;
    return what became of them, and whether the limit of a key has changed."""
    values = {"jobs": given, "takes": takes}
    [(enqueued_at, ids, refused, changes)] = fetch(connection, ENQUEUE_LIMITED, values)
    present, job_ids, places = read(enqueued_at), iter(sorted(ids)), set(refused)
    enqueued = [
        EnqueuedJob(None if place in places else next(job_ids), present)
        for place in range(len(jobs))
    ]
    return enqueued, changes


def _admit(connection: BaseDatabaseWrapper, limits: Mapping[str, int]) -> None:
    set_limits(connection, limits)
    admit_locked(connection, limits.keys())


def _given(place: int, job: NewJob) -> dict[str, object]:
    given: dict[str, object] = {
        "place": place,
        "queue_name": job.queue_name,
        "rank": job.rank,
        "task_path": job.task_path,
        "backend_name": job.backend_name,
        "arguments": job.arguments,
        "max_attempts": job.max_attempts,
    }
    if job.run_at is not None:
        given["run_at"] = to_text(job.run_at)
    if job.delay is not None:
        given["delay"] = to_microseconds(job.delay)
    if job.limit is not None:
        given["key"] = job.limit.key
        given["to"] = job.limit.to
        given["duration"] = to_microseconds(job.limit.duration)
        given["discards"] = job.limit.discards
    return given
