"""Inserting jobs with their first executions: one statement, however many jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, NewJob, tables

from .clock import NOW_SQL, read, seconds, to_microseconds, to_text
from .statements import fetch

# A stray row of the same job, which nobody but a stranger can have left, gives way.
TAKE_OVER = """
ON CONFLICT (job_id) DO UPDATE SET queue_name = excluded.queue_name, "rank" = excluded."rank",
                                   token = excluded.token, created_at = excluded.created_at"""
TAKE_OVER_DUE = f"{TAKE_OVER}, due_at = excluded.due_at"

# One parameter for all jobs: a text is sent and read faster than arrays of every column.
_GIVEN = f"""
WITH given AS (
  SELECT *, {{due_at}} AS due_at FROM json_to_recordset(%(jobs)s::json) AS job(
    place int, queue_name text, "rank" smallint, task_path text, backend_name text,
    arguments text, max_attempts smallint, run_at timestamptz, delay bigint)
), job AS (
  INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                             attempts, token, enqueued_at, scheduled_at)
  SELECT queue_name, task_path, backend_name, "rank", arguments, max_attempts, 0, 0, {NOW_SQL},
         CASE WHEN due_at > {NOW_SQL} THEN due_at END
  FROM given ORDER BY place
  RETURNING id, queue_name, "rank", enqueued_at, scheduled_at
), ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at)
  SELECT id, queue_name, "rank", 0, enqueued_at FROM job WHERE scheduled_at IS NULL
  {TAKE_OVER}
)"""

_TELL = f"SELECT id, {seconds('enqueued_at')} FROM job"

#: For jobs that are all ready at once: planning takes longer than running it.
ENQUEUE_READY = f"{_GIVEN.format(due_at='NULL::timestamptz')} {_TELL}"

_DUE_AT = f"""
CASE WHEN delay IS NULL THEN run_at ELSE {NOW_SQL} + delay * interval '1 microsecond' END"""

ENQUEUE = f"""
{_GIVEN.format(due_at=_DUE_AT)}, scheduled AS (
  INSERT INTO {tables.SCHEDULED} (job_id, queue_name, "rank", token, created_at, due_at)
  SELECT id, queue_name, "rank", 0, enqueued_at, scheduled_at FROM job
  WHERE scheduled_at IS NOT NULL
  {TAKE_OVER_DUE}
) {_TELL}"""


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    if not jobs:
        return []
    given = json.dumps([_given(place, job) for place, job in enumerate(jobs)])
    timed = any(job.run_at is not None or job.delay is not None for job in jobs)
    rows = fetch(connection, ENQUEUE if timed else ENQUEUE_READY, {"jobs": given})
    # Rows come back in any order, but the ids were given out in the order of the jobs.
    return [EnqueuedJob(job_id, read(enqueued_at)) for job_id, enqueued_at in sorted(rows)]


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
    return given
