"""Inserts jobs with their first executions: one statement, however many jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, NewJob

from .clock import read, to_microseconds, to_text
from .enqueue_limited import enqueue_limited
from .enqueue_sql import (
    ENQUEUE,
    ENQUEUE_ALIKE,
    ENQUEUE_ALIKE_AND_NOTIFY,
    ENQUEUE_ONE,
    ENQUEUE_ONE_AND_NOTIFY,
    ENQUEUE_WAITING,
)
from .errors import is_limit
from .prepared import fetch
from .wakeup import is_due_with_enqueue, note_refused, note_sent

#: What jobs that are inserted by one statement mostly have in common.
_SHARED = ("queue_name", "rank", "task_path", "backend_name", "max_attempts")
_ALIKE = attrgetter(*_SHARED)


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    if not jobs:
        return []
    if jobs[0].waits:
        [row] = fetch(connection, ENQUEUE_WAITING, {"jobs": _to_json(jobs)})
        return _in_order(row)
    if any(job.limit is not None for job in jobs):
        return enqueue_limited(connection, jobs, _to_json(jobs))
    shared = _common(jobs)
    if shared is None:
        [row] = fetch(connection, ENQUEUE, {"jobs": _to_json(jobs)})
    else:
        row = _enqueue_alike(connection, jobs, shared)
    return _in_order(row)


def _in_order(row: tuple[Any, ...]) -> list[EnqueuedJob]:
    job_ids, enqueued_at = row[0], read(row[1])
    # Ids come in any order, but are assigned in the order of the jobs.
    return [EnqueuedJob(job_id, enqueued_at) for job_id in sorted(job_ids)]


def _enqueue_alike(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob], shared: dict[str, Any]
) -> tuple[Any, ...]:
    if len(jobs) == 1:
        statements = ENQUEUE_ONE, ENQUEUE_ONE_AND_NOTIFY
        arguments = jobs[0].arguments
    else:
        statements = ENQUEUE_ALIKE, ENQUEUE_ALIKE_AND_NOTIFY
        arguments = json.dumps([job.arguments for job in jobs])
    alone, with_notification = statements
    values = {**shared, "arguments": arguments}
    if is_due_with_enqueue(connection):
        try:
            [row] = fetch(connection, with_notification, values)
        except DatabaseError as error:
            if not is_limit(error):
                raise
            # Nobody takes notifications off their queue. The jobs need none.
            note_refused(connection, error)
        else:
            note_sent(connection)
            return row
    [row] = fetch(connection, alone, values)
    return row


def _common(jobs: Sequence[NewJob]) -> dict[str, Any] | None:
    """Return what the jobs have in common if they differ in their arguments alone, are ready at
    once and have no metadata, otherwise ``None``."""
    first = jobs[0]
    for job in jobs:
        if job.run_at is not None or job.delay is not None or job.metadata is not None:
            return None
        if job is not first and _ALIKE(job) != _ALIKE(first):
            return None
    return dict(zip(_SHARED, _ALIKE(first), strict=True))


def _to_json(jobs: Sequence[NewJob]) -> str:
    return json.dumps([_given(ordinal, job) for ordinal, job in enumerate(jobs)])


def _given(ordinal: int, job: NewJob) -> dict[str, object]:
    given: dict[str, object] = {
        "ordinal": ordinal,
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
    if job.metadata is not None:
        given["metadata"] = job.metadata
    if job.limit is not None:
        given["key"] = job.limit.key
        given["to"] = job.limit.to
        given["duration"] = to_microseconds(job.limit.duration)
        given["discards"] = job.limit.discards
    return given
