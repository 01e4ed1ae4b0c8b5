"""Inserting jobs: one round trip, however many tables and rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, Limit, NewJob, tables

from .clock import NOW_SQL, microseconds, to_text
from .conversation import Conversation, converse
from .literals import Raw, Value, insertion, portions
from .packets import Answer, Statement
from .permits import admitting, counting, discarding_refused, set_limits
from .server import server_of

# One instant for all rows of a job: two statements would read the clock at two moments.
TAKE_TIME = Statement(f"SET @steady_queue_now = {NOW_SQL}")
NOW = Raw("@steady_queue_now")

INSERT_JOBS = f"""
INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, `rank`, arguments, max_attempts,
                           attempts, token, enqueued_at, scheduled_at) VALUES"""
INSERT_LIMITED_JOBS = f"""
INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, `rank`, arguments, max_attempts,
                           attempts, token, enqueued_at, scheduled_at, concurrency_key,
                           concurrency_limit, concurrency_duration, concurrency_discards) VALUES"""

# The ids of the rows of one INSERT ... VALUES follow each other, by the step of the server: in a
# cluster that is not 1.
FIRST_ID = Statement(
    "SELECT LAST_INSERT_ID(), @@auto_increment_increment, CAST(@steady_queue_now AS DATETIME(6))"
)

# A stray row of the same job, which nobody but a stranger can have left, gives way.
INSERT_READY = f"""
REPLACE INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at) VALUES"""
INSERT_SCHEDULED = f"""
REPLACE INTO {tables.SCHEDULED}
        (job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key) VALUES"""
INSERT_BLOCKED = f"""
REPLACE INTO {tables.BLOCKED}
        (job_id, queue_name, `rank`, token, created_at, concurrency_key) VALUES"""

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
    limits = {
        job.limit.key: job.limit.to
        for job in jobs
        if job.limit is not None and _due(job, present) is None
    }
    # Locked first: who looks for jobs that wait would wait for the rows of this one.
    statements = [TAKE_TIME]
    if limits:
        statements.append(set_limits(server_of(conversation.connection), limits))
    batches = list(portions(jobs, lambda job: len(job.arguments or "")))
    for portion in batches:
        statements += insertions(portion, [_due(job, present) for job in portion])
    if limits:
        statements.append(counting(limits))
    answers = conversation.ask(statements, last=not limits)
    enqueued = _enqueued(statements, answers, batches)
    if not limits:
        return enqueued
    admission = admitting(conversation, limits, answers[-1])
    refused = {
        new.job_id
        for new, job in zip(enqueued, jobs, strict=True)
        if new.job_id is not None and job.limit is not None and job.limit.discards
        and new.job_id not in admission.job_ids and _due(job, present) is None
    }  # fmt: skip
    conversation.ask([*admission.statements, *discarding_refused(sorted(refused))], last=True)
    return [new._replace(job_id=None) if new.job_id in refused else new for new in enqueued]


def _enqueued(
    statements: Sequence[Statement], answers: Sequence[Answer], batches: Sequence[Sequence[NewJob]]
) -> list[EnqueuedJob]:
    """Read what became of the jobs of every INSERT."""
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
    blocked: list[Sequence[Value]] = []
    scheduled: list[Sequence[Value]] = []
    limited = any(job.limit is not None for job in jobs)
    for number, (job, due_at) in enumerate(zip(jobs, due, strict=True)):
        # An instant that is past is kept as well: the caller asked for it.
        run_at = due_at or (to_text(job.run_at) if job.run_at is not None else None)
        row: tuple[Value, ...] = (
            job.queue_name, job.task_path, job.backend_name, job.rank, job.arguments,
            job.max_attempts, 0, 0, NOW, run_at,
        )  # fmt: skip
        rows.append((*row, *_limited(job.limit)) if limited else row)
        job_id = Raw(f"LAST_INSERT_ID() + {number} * @@auto_increment_increment")
        placed = (job_id, job.queue_name, job.rank, 0, NOW)
        if due_at is not None:
            key = None if job.limit is None else job.limit.key
            scheduled.append((*placed, due_at, key))
        elif job.limit is not None:
            blocked.append((*placed, job.limit.key))
        else:
            ready.append(placed)
    statements = [insertion(INSERT_LIMITED_JOBS if limited else INSERT_JOBS, rows), FIRST_ID]
    if ready:
        statements.append(insertion(INSERT_READY, ready))
    if blocked:
        statements.append(insertion(INSERT_BLOCKED, blocked))
    if scheduled:
        statements.append(insertion(INSERT_SCHEDULED, scheduled))
    return statements


def _limited(limit: Limit | None) -> tuple[Value, ...]:
    if limit is None:
        return None, None, None, 0
    return limit.key, limit.to, microseconds(limit.duration), int(limit.discards)


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
