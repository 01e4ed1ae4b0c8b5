"""Inserts jobs with concurrency limits: mostly in one statement, which takes free permits as well.

Jobs whose limit has changed, and several of one key, are inserted as blocked, and admitted after
their semaphores are locked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import EnqueuedJob, NewJob, get_logger

from .clock import read
from .enqueue_sql import ENQUEUE_LIMITED
from .errors import is_conflict, is_contention
from .permits import admit_locked, discard_refused, set_limits
from .prepared import fetch_named
from .transactions import is_in_transaction, run_in_transaction

logger = get_logger("steady_queue.postgres")


def enqueue_limited(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob], given: str
) -> list[EnqueuedJob]:
    """Insert jobs, of which ``given`` is the text: those that find a permit ready, others
    blocked."""
    keys = [job.limit.key for job in jobs if job.limit is not None]
    takes = len(set(keys)) == len(keys)
    if takes:
        try:
            enqueued, doubtful = _insert(connection, jobs, given, takes=True)
        except DatabaseError as error:
            # In the isolation of the session, statements fail where those of READ COMMITTED would
            # have waited. A time-out was waited for already.
            if not is_conflict(error) or is_in_transaction(connection):
                raise
        else:
            return _admit_stored(connection, jobs, enqueued, doubtful) if doubtful else enqueued

    def insert() -> list[EnqueuedJob]:
        enqueued, doubtful = _insert(connection, jobs, given, takes=takes)
        return _admit(connection, jobs, enqueued, doubtful)

    return run_in_transaction(connection, insert)


def _admit_stored(
    connection: BaseDatabaseWrapper,
    jobs: Sequence[NewJob],
    enqueued: list[EnqueuedJob],
    limits: Mapping[str, int],
) -> list[EnqueuedJob]:
    """Admit jobs that are committed already, unless the caller has a transaction."""
    try:
        return run_in_transaction(connection, lambda: _admit(connection, jobs, enqueued, limits))
    except DatabaseError as error:
        if not is_contention(error) or is_in_transaction(connection):
            raise
        # An error would have the caller enqueue all of them again.
        logger.warning(
            "Jobs whose concurrency limit has changed wait for the next permit that is given back, "
            "or are discarded, since others have locked their limit: %s",
            error,
            extra={"event": "enqueue.not_admitted", "jobs": len(limits)},
        )
        return _without_refused(connection, jobs, enqueued, limits)


def _insert(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob], given: str, *, takes: bool
) -> tuple[list[EnqueuedJob], dict[str, int]]:
    """Insert jobs; those with a limit are blocked, unless they may take a permit (``takes``) and
    get one. Return the enqueued jobs, and the limits of the keys that have yet to be admitted."""
    values = {"jobs": given, "takes": takes}
    [row] = fetch_named(connection, ENQUEUE_LIMITED, values)
    present, refused = read(row["enqueued_at"]), set(row["refused"])
    job_ids = iter(sorted(row["job_ids"]))
    enqueued = [
        EnqueuedJob(None if ordinal in refused else next(job_ids), present)
        for ordinal in range(len(jobs))
    ]
    return enqueued, json.loads(row["doubtful"] or "{}")


def _admit(
    connection: BaseDatabaseWrapper,
    jobs: Sequence[NewJob],
    enqueued: Sequence[EnqueuedJob],
    limits: Mapping[str, int],
) -> list[EnqueuedJob]:
    """Admit the jobs that find a permit; discard those that find none and must not wait.

    ``limits`` maps the keys that have yet to be admitted to their limits.
    """
    if limits:
        set_limits(connection, limits)
        admit_locked(connection, limits.keys())
    return _without_refused(connection, jobs, enqueued, limits)


def _without_refused(
    connection: BaseDatabaseWrapper,
    jobs: Sequence[NewJob],
    enqueued: Sequence[EnqueuedJob],
    limits: Mapping[str, int],
) -> list[EnqueuedJob]:
    """Discard those of the jobs that are blocked and must not wait."""
    leaving = [
        new.job_id
        for new, job in zip(enqueued, jobs, strict=True)
        if new.job_id is not None and job.limit is not None and job.limit.discards
        and job.limit.key in limits
    ]  # fmt: skip
    gone = discard_refused(connection, leaving) if leaving else set()
    return [new._replace(job_id=None) if new.job_id in gone else new for new in enqueued]
