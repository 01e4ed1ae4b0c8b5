"""Inserting jobs: one round trip, however many tables and rows there are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, Limit, NewJob, portable, tables

from .batches import Result, Statement
from .clock import NOW_SQL, microseconds, to_text
from .errors import StepChanged
from .inline_tables import SQL, Value, chunks, insert_rows
from .permits import Opened, admitting_new, discarding_refused
from .semaphores import open_semaphores
from .server import server_of
from .transactions import Transaction, run_in_transaction

# One time for all rows of a job: two statements would read the clock at different moments. The
# step of ids is read with it, and compared after each INSERT: Galera changes it when a node joins
# or leaves, also for sessions that are open.
TAKE_TIME = Statement(
    f"SET @steady_queue_now = {NOW_SQL}, @steady_queue_step = @@auto_increment_increment"
)
NOW = SQL("@steady_queue_now")

INSERT_JOBS = f"""
INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, `rank`, arguments, max_attempts,
                           attempts, token, enqueued_at, scheduled_at) VALUES"""
INSERT_DETAILED_JOBS = f"""
INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, `rank`, arguments, max_attempts,
                           attempts, token, enqueued_at, scheduled_at, concurrency_key,
                           concurrency_limit, concurrency_duration, concurrency_discards,
                           metadata) VALUES"""

# The ids of the rows of one INSERT ... VALUES are consecutive, in steps of the server's setting:
# in a cluster that is not 1.
FIRST_ID = Statement(
    "SELECT LAST_INSERT_ID(), @steady_queue_step, @@auto_increment_increment, "
    "CAST(@steady_queue_now AS DATETIME(6))"
)

# Replaces a stray row of the same job, which only manual edits can have left.
INSERT_READY = f"""
REPLACE INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at, turn) VALUES"""
INSERT_SCHEDULED = f"""
REPLACE INTO {tables.SCHEDULED}
        (job_id, queue_name, `rank`, token, created_at, due_at, concurrency_key) VALUES"""
INSERT_BLOCKED = f"""
REPLACE INTO {tables.BLOCKED}
        (job_id, queue_name, `rank`, token, created_at, concurrency_key) VALUES"""

PRESENT = Statement(f"SELECT {NOW_SQL}")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def enqueue(connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    if not jobs:
        return []
    return run_in_transaction(
        connection,
        lambda transaction: _enqueue(transaction, jobs),
        reads=any(job.limit is not None for job in jobs),
    )


def _enqueue(transaction: Transaction, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    present = None
    if any(job.run_at is not None for job in jobs):
        # Whether a time is past decides which table the job goes to.
        present = _utc(transaction.execute([PRESENT])[0].rows[0][0])
    limits = {
        job.limit.key: job.limit.to
        for job in jobs
        if job.limit is not None and not job.waits and _due(job, present) is None
    }
    # Locked first: a transaction that admits blocked jobs would wait for the rows of this one.
    opening = open_semaphores(server_of(transaction.connection), limits) if limits else []
    statements = [TAKE_TIME, *opening]
    inserted = list(chunks(jobs, lambda job: len(job.arguments or "") + len(job.metadata or "")))
    for chunk in inserted:
        statements += insertions(chunk, [_due(job, present) for job in chunk])
    # On Galera the ids are looked at before the commit.
    is_last = not limits and not server_of(transaction.connection).is_galera
    results = transaction.execute(statements, last=is_last)
    try:
        enqueued = _enqueued(statements, results, inserted)
    except StepChanged:
        transaction.doom()  # It has jobs without a state.
        raise
    if not limits:
        return enqueued
    opened = Opened.of(results[len(opening)], limits)
    admission = admitting_new(transaction, opened, _by_key(jobs, enqueued, present))
    refused = {
        new.job_id
        for new, job in zip(enqueued, jobs, strict=True)
        if new.job_id is not None and job.limit is not None and job.limit.discards
        and new.job_id not in admission.job_ids and _due(job, present) is None
    }  # fmt: skip
    transaction.execute([*admission.statements, *discarding_refused(sorted(refused))], last=True)
    return [new._replace(job_id=None) if new.job_id in refused else new for new in enqueued]


def _by_key(
    jobs: Sequence[NewJob], enqueued: Sequence[EnqueuedJob], present: datetime | None
) -> dict[str, list[int]]:
    """Return the jobs that need permits now, by their keys, in the order in which they get them."""
    found: dict[str, list[tuple[int, int]]] = {}
    for job, new in zip(jobs, enqueued, strict=True):
        if job.limit is not None and new.job_id is not None and _due(job, present) is None:
            found.setdefault(job.limit.key, []).append((job.rank, new.job_id))
    return {key: [job_id for _, job_id in sorted(places)] for key, places in found.items()}


def _enqueued(
    statements: Sequence[Statement], results: Sequence[Result], inserted: Sequence[Sequence[NewJob]]
) -> list[EnqueuedJob]:
    """Return the ids and times of the jobs of every INSERT.

    Raises ``StepChanged`` if the ids are not known.
    """
    firsts = [
        result.rows[0]
        for statement, result in zip(statements, results, strict=True)
        if statement is FIRST_ID
    ]
    enqueued = []
    for (first, step, later_step, enqueued_at), chunk in zip(firsts, inserted, strict=True):
        if len(chunk) > 1 and int(step) != int(later_step):
            raise StepChanged(
                f"auto_increment_increment changed from {step} to {later_step} while jobs were "
                "inserted: a node has joined the cluster, or left it. Try again."
            )
        enqueued += [
            EnqueuedJob(int(first) + number * int(step), _utc(enqueued_at))
            for number in range(len(chunk))
        ]
    return enqueued


def insertions(jobs: Sequence[NewJob], due: Sequence[Value]) -> list[Statement]:
    """Return the statements that insert ``jobs``; ``due`` has ``None`` for those due now."""
    rows: list[Sequence[Value]] = []
    ready: list[Sequence[Value]] = []
    blocked: list[Sequence[Value]] = []
    scheduled: list[Sequence[Value]] = []
    detailed = any(job.limit is not None or job.metadata is not None for job in jobs)
    for number, (job, due_at) in enumerate(zip(jobs, due, strict=True)):
        # A time in the past is kept too: the caller asked for it.
        run_at = due_at or (to_text(job.run_at) if job.run_at is not None else None)
        row: tuple[Value, ...] = (
            job.queue_name, job.task_path, job.backend_name, job.rank, job.arguments,
            job.max_attempts, 0, 0, NOW, run_at,
        )  # fmt: skip
        rows.append((*row, *_limited(job.limit), job.metadata) if detailed else row)
        if job.waits:
            continue
        job_id = SQL(f"LAST_INSERT_ID() + {number} * @steady_queue_step")
        execution = (job_id, job.queue_name, job.rank, 0, NOW)
        if due_at is not None:
            key = None if job.limit is None else job.limit.key
            scheduled.append((*execution, due_at, key))
        elif job.limit is not None:
            blocked.append((*execution, job.limit.key))
        else:
            ready.append((*execution, job_id))
    statements = [insert_rows(INSERT_DETAILED_JOBS if detailed else INSERT_JOBS, rows), FIRST_ID]
    if ready:
        statements.append(insert_rows(INSERT_READY, ready))
    if blocked:
        statements.append(insert_rows(INSERT_BLOCKED, blocked))
    if scheduled:
        statements.append(insert_rows(INSERT_SCHEDULED, scheduled))
    return statements


def _limited(limit: Limit | None) -> tuple[Value, ...]:
    if limit is None:
        return None, None, None, 0
    return limit.key, limit.to, microseconds(limit.duration), int(limit.discards)


def _due(job: NewJob, present: datetime | None) -> Value:
    """Return the due time of a future job, or ``None`` if it is due now.

    ``present`` may be left out for jobs without ``run_at``: a delay is added by the server.
    """
    due = None if job.waits else portable.due_at(job, present or EPOCH)
    if due is None:
        return None
    if job.delay is not None:
        return SQL(f"@steady_queue_now + INTERVAL {microseconds(job.delay)} MICROSECOND")
    return to_text(due)


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)
