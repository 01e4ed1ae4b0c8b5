"""Inserting jobs: one transaction, a few statements however many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, NewJob, tables

from .clock import NOW_SQL, from_text, to_text
from .locking import transaction

PRESENT = f"SELECT {NOW_SQL}"

# Ids are given out here, under the write lock: SQLite tells them of one row only.
LAST_ID = f"SELECT seq FROM sqlite_sequence WHERE name = '{tables.JOBS}'"

INSERT_JOB = f"""
INSERT INTO {tables.JOBS} (id, queue_name, task_path, backend_name, "rank", arguments,
                           max_attempts, attempts, token, enqueued_at, scheduled_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, 0, 0, %s, %s)"""

# A stray row of the same job, which nobody but a stranger can have left, gives way.
INSERT_READY = f"""
INSERT OR REPLACE INTO {tables.READY} (job_id, queue_name, "rank", token, created_at)
VALUES (%s, %s, %s, %s, %s)"""

INSERT_SCHEDULED = f"""
INSERT OR REPLACE INTO {tables.SCHEDULED} (job_id, queue_name, "rank", token, created_at, due_at)
VALUES (%s, %s, %s, %s, %s, %s)"""


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    with transaction(connection), connection.cursor() as cursor:
        cursor.execute(PRESENT)
        present_text = cursor.fetchone()[0]
        present = from_text(present_text)
        cursor.execute(LAST_ID)
        row = cursor.fetchone()
        first_id = (row[0] if row else 0) + 1
        rows, ready, scheduled = [], [], []
        for job_id, job in enumerate(jobs, first_id):
            due = present + job.delay if job.delay is not None else job.run_at
            due_text = to_text(due) if due is not None and due > present else None
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
                    due_text,
                )
            )
            placed = (job_id, job.queue_name, job.rank, 0, present_text)
            if due_text is None:
                ready.append(placed)
            else:
                scheduled.append((*placed, due_text))
        cursor.executemany(INSERT_JOB, rows)
        if ready:
            cursor.executemany(INSERT_READY, ready)
        if scheduled:
            cursor.executemany(INSERT_SCHEDULED, scheduled)
    return [EnqueuedJob(job_id, present) for job_id in range(first_id, first_id + len(jobs))]


def later(present_text: str, seconds: float) -> str:
    """Return the stored form of an instant some seconds after a stored one."""
    return to_text(from_text(present_text) + timedelta(seconds=seconds))
