"""Inserting jobs: one transaction, a few statements however many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, Limit, NewJob, portable, tables

from .clock import NOW_SQL, from_text, to_text
from .locking import transaction
from .permits import INSERT_BLOCKED, admit_by, discard_refused

PRESENT = f"SELECT {NOW_SQL}"

# Ids are given out here, under the write lock: SQLite tells them of one row only.
LAST_ID = f"SELECT seq FROM sqlite_sequence WHERE name = '{tables.JOBS}'"

INSERT_JOB = f"""
INSERT INTO {tables.JOBS} (id, queue_name, task_path, backend_name, "rank", arguments,
                           max_attempts, attempts, token, enqueued_at, scheduled_at,
                           concurrency_key, concurrency_limit, concurrency_duration,
                           concurrency_discards)
VALUES (%s, %s, %s, %s, %s, %s, %s, 0, 0, %s, %s, %s, %s, %s, %s)"""

# A stray row of the same job, which nobody but a stranger can have left, gives way.
INSERT_READY = f"""
INSERT OR REPLACE INTO {tables.READY} (job_id, queue_name, "rank", token, created_at)
VALUES (%s, %s, %s, %s, %s)"""

INSERT_SCHEDULED = f"""
INSERT OR REPLACE INTO {tables.SCHEDULED}
       (job_id, queue_name, "rank", token, created_at, due_at, concurrency_key)
VALUES (%s, %s, %s, %s, %s, %s, %s)"""

UNLIMITED = (None, None, None, False)


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    with transaction(connection), connection.cursor() as cursor:
        cursor.execute(PRESENT)
        present_text = cursor.fetchone()[0]
        present = from_text(present_text)
        cursor.execute(LAST_ID)
        row = cursor.fetchone()
        job_ids = range(first := (row[0] if row else 0) + 1, first + len(jobs))
        rows, ready, scheduled = [], [], []
        blocked: list[tuple[Any, ...]] = []
        limits: list[tuple[int, Limit]] = []
        for job_id, job in zip(job_ids, jobs, strict=True):
            due_text = _due(job, present)
            rows.append(
                (
                    job_id,
                    job.queue_name,
                    job.task_path,
                    job.backend_name,
                    job.rank,
                    job.arguments,
                    job.max_attempts,
                    present_text,
                    # An instant that is past is kept as well: the caller asked for it.
                    due_text or (to_text(job.run_at) if job.run_at is not None else None),
                    *_limited(job),
                )
            )
            placed = (job_id, job.queue_name, job.rank, 0, present_text)
            if due_text is not None:
                key = None if job.limit is None else job.limit.key
                scheduled.append((*placed, due_text, key))
            elif job.limit is not None:
                blocked.append((*placed, job.limit.key))
                limits.append((job_id, job.limit))
            else:
                ready.append(placed)
        cursor.executemany(INSERT_JOB, rows)
        if ready:
            cursor.executemany(INSERT_READY, ready)
        if scheduled:
            cursor.executemany(INSERT_SCHEDULED, scheduled)
        refused: set[int] = set()
        if blocked:
            cursor.executemany(INSERT_BLOCKED, blocked)
            refused = _admit(cursor, limits)
    return [EnqueuedJob(None if job_id in refused else job_id, present) for job_id in job_ids]


def _admit(cursor: Any, limits: Sequence[tuple[int, Limit]]) -> set[int]:
    """Give the new jobs their permits; return the ids of those that are gone."""
    admit_by(cursor, {limit.key: limit.to for _, limit in limits})
    discarding = [job_id for job_id, limit in limits if limit.discards]
    return discard_refused(cursor, discarding) if discarding else set()


def _due(job: NewJob, present: datetime) -> str | None:
    """Return when a job that is not due is; ``None``: it is due."""
    due = portable.due_at(job, present)
    return to_text(due) if due is not None else None


def _limited(job: NewJob) -> tuple[object, ...]:
    limit = job.limit
    if limit is None:
        return UNLIMITED
    duration = limit.duration // timedelta(microseconds=1)
    return limit.key, limit.to, duration, limit.discards


def later(present_text: str, seconds: float) -> str:
    """Return the stored form of an instant some seconds after a stored one."""
    return to_text(from_text(present_text) + timedelta(seconds=seconds))
