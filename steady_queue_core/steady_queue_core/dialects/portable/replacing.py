"""Replacing jobs that wait for their first start, in plain ORM."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from ...features.batches.link import Link
from ..membership import relinked
from ..present_rows import PresentRows
from ..records import NewJob
from .clock import storable
from .enqueue import due_at, execution_row, job_row
from .models import model, rows_of
from .permits import end_permits, lock_semaphores

#: In the order in which jobs pass through them: a job that moves on while its row is awaited is
#: found in the next.
STATES = ("ScheduledExecution", "BlockedExecution", "ReadyExecution")
#: What a job takes over from the one that replaces it.
FIELDS = (
    "queue_name", "task_path", "backend_name", "rank", "arguments", "metadata", "max_attempts",
    "token", "enqueued_at", "scheduled_at", "concurrency_key", "concurrency_limit",
    "concurrency_duration", "concurrency_discards",
)  # fmt: skip


def has_begun(job: Any) -> bool:
    """Whether a job that was read with its claim has started, has been claimed, or has ended."""
    if job.started_at is not None or job.finished_at is not None:
        return True
    return getattr(job, "claimedexecution", None) is not None


def is_starting(job: Any) -> bool:
    """Whether a job that was read with its claim was claimed, and has not started."""
    return job.started_at is None and getattr(job, "claimedexecution", None) is not None


class NoPermit(Exception):
    """Jobs were to become others that found no permit, and must not wait. Nothing was changed."""

    def __init__(self, job_ids: Collection[int]) -> None:
        super().__init__(f"no permits for what was to replace jobs {sorted(job_ids)}")
        self.job_ids = job_ids


def replace_jobs(
    connection: BaseDatabaseWrapper,
    dialect: Any,
    replacing: Mapping[int, NewJob],
    also: Sequence[NewJob],
) -> dict[int, Any]:
    """Make jobs what they are to become, by their ids, and return them. One that is claimed
    meanwhile is left alone. ``also``: jobs that are enqueued in the same transaction.

    They stay in their batches, and get into no other one, which has not counted them. Raises
    ``NoPermit``.
    """
    leaving = [pk for pk, job in replacing.items() if job.limit is not None and job.limit.discards]
    if not leaving:
        return _replace_jobs(connection, dialect, replacing, also)
    # A savepoint: only an admission that has taken place tells who gets the permits.
    with atomic(using=connection.alias):
        replaced = _replace_jobs(connection, dialect, replacing, also)
        blocked = rows_of(connection, "BlockedExecution")
        refused = list(blocked.filter(pk__in=leaving).values_list("pk", flat=True))
        if refused:
            raise NoPermit(refused)
    return replaced


def _replace_jobs(
    connection: BaseDatabaseWrapper,
    dialect: Any,
    replacing: Mapping[int, NewJob],
    also: Sequence[NewJob],
) -> dict[int, Any]:
    using = connection.alias
    jobs = model("Job").objects.using(using)
    old = _limits_and_metadata(connection, dialect, list(replacing))
    old_keys = {key for key, _ in old.values() if key is not None}
    keys = {*old_keys, *(job.limit.key for job in also if job.limit is not None)}
    found = _take_out(connection, dialect, list(replacing), keys)
    new = {pk: replacing[pk] for pk in found}
    present = dialect.current_time(connection)
    replaced = {}
    for pk, job in new.items():
        due = due_at(job, present)
        row = replaced[pk] = job_row(job, present, due)
        # A claim may read the execution as of now, and its job as of a moment before: by another
        # token it knows, and reads the job again.
        row.pk, row.token = pk, found[pk].token + 1
        row.metadata = relinked(job.metadata, Link.read(old[pk][1]))
        jobs.filter(pk=pk).update(**{name: getattr(row, name) for name in FIELDS})
        execution = execution_row(job, row, due, storable(present))
        execution.save(using=using, force_insert=True)
    dialect.lock_semaphores(connection, list(new.values()))
    dialect.admit(connection, sorted(old_keys))
    return replaced


def _limits_and_metadata(
    connection: BaseDatabaseWrapper, dialect: Any, job_ids: Sequence[int]
) -> dict[int, tuple[str | None, str | None]]:
    jobs = rows_of(connection, "Job")
    rows = jobs.filter(pk__in=job_ids).order_by("pk")
    columns = rows.values_list("pk", "concurrency_key", "metadata")
    found = PresentRows(connection, dialect).of(columns)
    return {pk: (key, metadata) for pk, key, metadata in found}


def _take_out(
    connection: BaseDatabaseWrapper, dialect: Any, job_ids: Sequence[int], keys: set[str]
) -> dict[int, Any]:
    """Delete the executions and the permits of jobs that wait; return the executions."""
    using = connection.alias
    found: dict[int, Any] = {}
    for state in STATES:
        if state == "BlockedExecution" and keys:
            # Lock order: scheduled rows, then semaphores, then everything that a permit moves.
            lock_semaphores(connection, keys)
        rows = model(state).objects.using(using)
        for job_id in sorted(set(job_ids) - found.keys()):
            for row in dialect.lock_rows(connection, rows.filter(pk=job_id), wait=True):
                found[job_id] = row
                rows.filter(pk=job_id)._raw_delete(using)
    end_permits(connection, found)
    return found
