"""Enqueueing: the stages of an insertion of jobs, in the order of the locks that they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from django.db.backends.base.base import BaseDatabaseWrapper

from ..features.unique.key import JobKey
from . import batches
from .joins import BatchClosed, Joins
from .operations import Operations
from .portable.members import insert_members
from .ready import Ready
from .records import EnqueuedJob, NewJob, Refused
from .unique_enqueue import KeyTaken, UniqueEnqueue


@dataclass(slots=True)
class Enqueueing:
    """Jobs that one transaction enqueues."""

    connection: BaseDatabaseWrapper
    dialect: Operations
    #: The jobs to insert: without those that become others, once their keys are locked.
    jobs: Sequence[NewJob]
    #: The unique keys of the jobs, in their order.
    keys: Sequence[JobKey | None] = ()
    #: Whether jobs may be refused: those that follow an outcome have nobody to tell.
    refuses: bool = True
    refused: Refused | None = None
    unique: UniqueEnqueue | None = None
    stored: list[EnqueuedJob] = field(default_factory=list)


Stage = Callable[[Enqueueing], None]


def lock_batches(enqueueing: Enqueueing) -> None:
    """Lock the batches that get more members. Those that take none any more refuse the jobs, or are
    left by them."""
    jobs = enqueueing.jobs
    batch_ids = {job.batch_id for job in jobs if job.batch_id is not None}
    if not batch_ids:
        return
    closed = Joins(enqueueing.connection, enqueueing.dialect).lock_open(batch_ids)
    if closed and enqueueing.refuses:
        enqueueing.refused = BatchClosed(closed)
    elif closed:
        enqueueing.jobs = [
            replace(job, batch_id=None) if job.batch_id in closed else job for job in jobs
        ]


def lock_keys(enqueueing: Enqueueing) -> None:
    """Lock the unique keys of the jobs; leave out those whose key another job has."""
    if not any(enqueueing.keys):
        return
    unique = enqueueing.unique = UniqueEnqueue(
        enqueueing.connection, enqueueing.dialect, enqueueing.jobs, enqueueing.keys,
        refuses=enqueueing.refuses,
    )  # fmt: skip
    locked = unique.lock()
    if isinstance(locked, KeyTaken):
        enqueueing.refused = locked
    else:
        enqueueing.jobs = locked


def insert(enqueueing: Enqueueing) -> None:
    """Insert the jobs, by stages of their own."""
    if enqueueing.jobs:
        enqueueing.stored = insert_jobs(enqueueing.connection, enqueueing.dialect, enqueueing.jobs)


def take_keys(enqueueing: Enqueueing) -> None:
    """Give the unique keys, which are locked, to the jobs that were inserted."""
    if enqueueing.unique is not None:
        enqueueing.stored = enqueueing.unique.take(enqueueing.stored)


def store_jobs(enqueueing: Enqueueing) -> None:
    """Lock the semaphores of the jobs; store these, with permits for those that get one."""
    enqueueing.stored = insert_plain(enqueueing.connection, enqueueing.dialect, enqueueing.jobs)


def make_members(enqueueing: Enqueueing) -> None:
    """Insert the members of batches that the jobs are."""
    insert_members(enqueueing.connection, enqueueing.jobs, enqueueing.stored)


def make_ready(enqueueing: Enqueueing) -> None:
    """Lock the keys of fair queues, and give the jobs that are ready their turns."""
    Ready(enqueueing.connection, enqueueing.dialect).new(enqueueing.jobs, enqueueing.stored)


#: What becomes of the jobs of a call.
ENQUEUEING: tuple[Stage, ...] = (lock_batches, lock_keys, insert, take_keys)
#: What becomes of jobs that are inserted, whatever their unique keys are.
INSERTING: tuple[Stage, ...] = (store_jobs, make_members, make_ready)


def enqueue(
    connection: BaseDatabaseWrapper, dialect: Operations, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    """Enqueue jobs of which some have metadata, or are to be members of batches.

    Raises ``BatchClosed`` or ``KeyTaken``, outside of the transaction: the caller's stays usable.
    """
    keys = _keys(jobs)
    if not any(keys) and all(job.batch_id is None for job in jobs):
        return insert_jobs(connection, dialect, jobs)
    enqueueing = dialect.in_transaction(
        connection, lambda: run(Enqueueing(connection, dialect, jobs, keys), ENQUEUEING)
    )
    if enqueueing.refused is not None:
        raise enqueueing.refused
    return enqueueing.stored


def enqueue_with_outcome(
    connection: BaseDatabaseWrapper, dialect: Operations, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    """Enqueue jobs in the transaction of an outcome: none is refused."""
    enqueueing = Enqueueing(connection, dialect, jobs, _keys(jobs), refuses=False)
    return run(enqueueing, ENQUEUEING).stored


def insert_jobs(
    connection: BaseDatabaseWrapper, dialect: Operations, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    """Insert jobs, whatever their unique keys are."""
    if all(job.batch_id is None and job.fair_key is None for job in jobs):
        return insert_plain(connection, dialect, jobs)
    return dialect.in_transaction(
        connection, lambda: run(Enqueueing(connection, dialect, jobs), INSERTING)
    ).stored


def insert_plain(
    connection: BaseDatabaseWrapper, dialect: Operations, jobs: Sequence[NewJob]
) -> list[EnqueuedJob]:
    """Insert jobs, and nothing that belongs to them, in statements of bounded size."""
    if len(jobs) == 1 or len(split := list(batches.split(jobs))) == 1:
        return dialect.store_jobs(connection, jobs)

    def insert() -> list[EnqueuedJob]:
        dialect.lock_semaphores(connection, jobs)
        return [stored for batch in split for stored in dialect.store_jobs(connection, batch)]

    return dialect.in_transaction(connection, insert)


def run(enqueueing: Enqueueing, stages: Sequence[Stage]) -> Enqueueing:
    """Go through the stages, in a transaction, until one refuses the jobs."""
    for stage in stages:
        stage(enqueueing)
        if enqueueing.refused is not None:
            break
    return enqueueing


def _keys(jobs: Sequence[NewJob]) -> list[JobKey | None]:
    return [None if job.metadata is None else JobKey.read(job.metadata) for job in jobs]
