"""The unique keys that jobs have until they start: freed after the claim, just before that."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import ClaimedJob, Dialect, Outcome
from ...dialects.rejected_rows import in_halves
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...processes.base.database import QueueDatabase, Unavailable
from ...processes.worker import outcomes

logger = get_logger("steady_queue.worker")

#: Seconds until a job is tried again whose unique key is locked by somebody who enqueues.
BUSY_PAUSE = 0.5


def not_yet(claims: Sequence[ClaimedJob], database: QueueDatabase) -> dict[int, Outcome]:
    """Free the unique keys that jobs have until they start, as these are about to. Return the
    outcomes of those that must not start, by their ids."""
    # Most jobs have no metadata.
    ending = [c for c in claims if c.metadata is not None and c.ends_key_at_start]
    if not ending:
        return {}
    waiting = set[int]()

    def free(connection: BaseDatabaseWrapper, dialect: Dialect) -> dict[int, Exception]:
        by_id = {each.job_id: each for each in ending}

        def free_some(job_ids: Sequence[int]) -> int:
            some = [by_id[job_id] for job_id in job_ids]
            waiting.update(dialect.free_started_keys(connection, some))
            return 0

        return in_halves(connection, dialect, list(by_id), free_some)[1]

    try:
        refused = database.run(free)
    except Unavailable:
        return {each.job_id: outcomes.released(each) for each in ending}
    for job_id, error in refused.items():
        log_internal_error(
            logger,
            "The unique key of job %d, which was to start, could not be freed",
            job_id,
            error=error,
            extra=about("worker.starts_refused", task_id=str(job_id)),
        )
    waiting |= refused.keys()
    return {
        each.job_id: outcomes.postponed(each, each.errors, BUSY_PAUSE)
        for each in ending
        if each.job_id in waiting
    }
