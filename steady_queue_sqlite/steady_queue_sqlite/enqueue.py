"""Inserting jobs: one transaction and a few statements, however many jobs there are.

A single job that is ready at once, which is what most calls enqueue, takes two.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, NewJob, portable, tables

from .clock import NOW_SQL, from_text, present, to_text
from .direct import direct_transaction
from .permits import INSERT_BLOCKED, admit_by, discard_refused
from .transactions import transaction

# Ids are assigned here, under the write lock: SQLite returns that of a single row only.
LAST_ID = f"SELECT seq FROM sqlite_sequence WHERE name = '{tables.JOBS}'"

INSERT_JOB = f"""
INSERT INTO {tables.JOBS} (id, queue_name, task_path, backend_name, "rank", arguments,
                           max_attempts, attempts, token, enqueued_at, scheduled_at,
                           concurrency_key, concurrency_limit, concurrency_duration,
                           concurrency_discards, metadata)
VALUES (%s, %s, %s, %s, %s, %s, %s, 0, 0, %s, %s, %s, %s, %s, %s, %s)"""

# Replaces a stray row of the same job, which only manual edits can have left.
INSERT_READY = f"""
INSERT OR REPLACE INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
VALUES (%s, %s, %s, %s, %s, %s)"""

INSERT_SCHEDULED = f"""
INSERT OR REPLACE INTO {tables.SCHEDULED}
       (job_id, queue_name, "rank", token, created_at, due_at, concurrency_key)
VALUES (%s, %s, %s, %s, %s, %s, %s)"""

UNLIMITED = (None, None, None, False)

INSERT_ONE = f"""
INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                           attempts, token, enqueued_at, concurrency_discards)
VALUES (%s, %s, %s, %s, %s, %s, 0, 0, {NOW_SQL.replace("%", "%%")}, false)
RETURNING id, enqueued_at"""

INSERT_ONE_READY = f"""
INSERT OR REPLACE INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
SELECT id, queue_name, "rank", 0, enqueued_at, id FROM {tables.JOBS} WHERE id = %s"""


class _New(NamedTuple):
    """A job with its id and, if it is not due yet, its due time as text."""

    job_id: int
    job: NewJob
    due: str | None


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    if len(jobs) == 1 and _is_plain(jobs[0]):
        return [_enqueue_one(connection, jobs[0])]
    with transaction(connection), connection.cursor() as cursor:
        now = present(cursor)
        enqueued_at = from_text(now)
        ids = _next_ids(cursor, len(jobs))
        new = [_New(i, job, _due(job, enqueued_at)) for i, job in zip(ids, jobs, strict=True)]
        cursor.executemany(INSERT_JOB, [_job_row(each, now) for each in new])
        if jobs and jobs[0].waits:
            return [EnqueuedJob(job_id, enqueued_at) for job_id in ids]
        _insert_executions(cursor, new, now)
        refused = _admit(cursor, [each for each in new if each.due is None])
    return [EnqueuedJob(None if job_id in refused else job_id, enqueued_at) for job_id in ids]


def _is_plain(job: NewJob) -> bool:
    return (
        job.run_at is None and job.delay is None and job.limit is None and job.metadata is None
        and not job.waits
    )  # fmt: skip


def _enqueue_one(connection: BaseDatabaseWrapper, job: NewJob) -> EnqueuedJob:
    values = (
        job.queue_name, job.task_path, job.backend_name, job.rank, job.arguments, job.max_attempts
    )  # fmt: skip
    with direct_transaction(connection) as run:
        [(job_id, enqueued_at)] = run(INSERT_ONE, values)
        run(INSERT_ONE_READY, [job_id])
    return EnqueuedJob(job_id, from_text(enqueued_at))


def _next_ids(cursor: Any, count: int) -> range:
    cursor.execute(LAST_ID)
    row = cursor.fetchone()
    first = (row[0] if row else 0) + 1
    return range(first, first + count)


def _due(job: NewJob, enqueued_at: datetime) -> str | None:
    due = None if job.waits else portable.due_at(job, enqueued_at)
    return None if due is None else to_text(due)


def _job_row(new: _New, now: str) -> tuple[Any, ...]:
    job = new.job
    # A time in the past is kept too: the caller asked for it.
    scheduled_at = new.due or (to_text(job.run_at) if job.run_at is not None else None)
    return (
        new.job_id,
        job.queue_name,
        job.task_path,
        job.backend_name,
        job.rank,
        job.arguments,
        job.max_attempts,
        now,
        scheduled_at,
        *_limited(job),
        job.metadata,
    )


def _insert_executions(cursor: Any, new: Sequence[_New], now: str) -> None:
    ready, scheduled, blocked = [], [], []
    for job_id, job, due in new:
        row = (job_id, job.queue_name, job.rank, 0, now)
        key = None if job.limit is None else job.limit.key
        if due is not None:
            scheduled.append((*row, due, key))
        elif key is not None:
            blocked.append((*row, key))
        else:
            ready.append((*row, job_id))
    for statement, rows in (
        (INSERT_READY, ready),
        (INSERT_SCHEDULED, scheduled),
        (INSERT_BLOCKED, blocked),
    ):
        if rows:
            cursor.executemany(statement, rows)


def _admit(cursor: Any, due: Sequence[_New]) -> set[int]:
    """Give jobs that are due their permits; return the ids of those that were discarded."""
    limits = [(job_id, job.limit) for job_id, job, _ in due if job.limit is not None]
    admit_by(cursor, {limit.key: limit.to for _, limit in limits})
    discarding = [job_id for job_id, limit in limits if limit.discards]
    return set(discard_refused(cursor, discarding)) if discarding else set()


def _limited(job: NewJob) -> tuple[object, ...]:
    limit = job.limit
    if limit is None:
        return UNLIMITED
    duration = limit.duration // timedelta(microseconds=1)
    return limit.key, limit.to, duration, limit.discards
