"""Inserting jobs: one round trip, however many tables and rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, NewJob, tables

from .clock import NOW_SQL, microseconds, to_text
from .conversation import Conversation, converse
from .literals import Raw, Value, insertion, portions
from .packets import Statement

# One instant for all rows of a job: two statements would read the clock at two moments.
TAKE_TIME = Statement(f"SET @steady_queue_now = {NOW_SQL}")
NOW = Raw("@steady_queue_now")

INSERT_JOBS = f"""
INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, `rank`, arguments, max_attempts,
                           attempts, token, enqueued_at, scheduled_at) VALUES"""

# The ids of the rows of one INSERT ... VALUES follow each other, by the step of the server: in a
# cluster that is not 1.
FIRST_ID = Statement(
    "SELECT LAST_INSERT_ID(), @@auto_increment_increment, CAST(@steady_queue_now AS DATETIME(6))"
)

# A stray row of the same job, which nobody but a stranger can have left, gives way.
INSERT_READY = f"""
REPLACE INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at) VALUES"""
INSERT_SCHEDULED = f"""
REPLACE INTO {tables.SCHEDULED} (job_id, queue_name, `rank`, token, created_at, due_at) VALUES"""

PRESENT = Statement(f"SELECT {NOW_SQL}")


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    if not jobs:
        return []
    return converse(connection, lambda conversation: _enqueue(conversation, jobs))


def _enqueue(conversation: Conversation, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    present = None
    if any(job.run_at is not None for job in jobs):
        # Whether an instant is past decides which table the job goes to.
        present = _utc(conversation.ask([PRESENT])[0].rows[0][0])
    statements = [TAKE_TIME]
    batches = list(portions(jobs, lambda job: len(job.arguments or "")))
    for portion in batches:
        statements += insertions(portion, [_due(job, present) for job in portion])
    answers = conversation.ask(statements, last=True)
    firsts = [
        answer.rows[0]
        for statement, answer in zip(statements, answers, strict=True)
        if statement is FIRST_ID
    ]
    return [
        EnqueuedJob(int(first) + number * int(step), _utc(enqueued_at))
        for (first, step, enqueued_at), portion in zip(firsts, batches, strict=True)
        for number in range(len(portion))
    ]


def insertions(jobs: Sequence[NewJob], due: Sequence[Value]) -> list[Statement]:
    """Return the statements that insert ``jobs``; ``due``: when each is, ``None`` for at once."""
    rows: list[Sequence[Value]] = []
    ready: list[Sequence[Value]] = []
    scheduled: list[Sequence[Value]] = []
    for number, (job, due_at) in enumerate(zip(jobs, due, strict=True)):
        rows.append(
            (job.queue_name, job.task_path, job.backend_name, job.rank, job.arguments,
             job.max_attempts, 0, 0, NOW, due_at)
        )  # fmt: skip
        job_id = Raw(f"LAST_INSERT_ID() + {number} * @@auto_increment_increment")
        placed = (job_id, job.queue_name, job.rank, 0, NOW)
        if due_at is None:
            ready.append(placed)
        else:
            scheduled.append((*placed, due_at))
    statements = [insertion(INSERT_JOBS, rows), FIRST_ID]
    if ready:
        statements.append(insertion(INSERT_READY, ready))
    if scheduled:
        statements.append(insertion(INSERT_SCHEDULED, scheduled))
    return statements


def _due(job: NewJob, present: datetime | None) -> Value:
    """Return when a job that is not due is, as SQL or text; ``None``: it is due."""
    if job.delay is not None:
        later = microseconds(job.delay)
        return Raw(f"@steady_queue_now + INTERVAL {later} MICROSECOND") if later > 0 else None
    if job.run_at is None or present is None or job.run_at <= present:
        return None
    return to_text(job.run_at)


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)
