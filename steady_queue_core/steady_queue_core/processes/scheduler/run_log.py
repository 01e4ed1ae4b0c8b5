"""What the log says of the runs of recurring tasks."""

from __future__ import annotations

from ...logging import about, get_logger
from .recurring_run import Attempt, EnqueueResult

logger = get_logger("steady_queue.scheduler")


def log_attempt(key: str, attempt: Attempt) -> None:
    """Log what came of the attempt to enqueue a run, unless that is for others to tell."""
    result, slot, job_id = attempt
    slot_at = slot.isoformat()
    if result is EnqueueResult.DISABLED:
        logger.debug(
            "Recurring task %r for %s is disabled",
            key,
            slot,
            extra=about("recurring.disabled", recurring_key=key, run_at=slot_at),
        )
    elif result is EnqueueResult.SKIPPED:
        logger.info(
            "Recurring task %r for %s is left out: its previous run, job %s, has not ended",
            key,
            slot,
            job_id,
            extra=about("recurring.skipped", recurring_key=key, run_at=slot_at, task_id=job_id),
        )
    elif result is EnqueueResult.WAITING:
        logger.info(
            "Recurring task %r for %s waits for the end of its previous run, job %s",
            key,
            slot,
            job_id,
            extra=about("recurring.waiting", recurring_key=key, run_at=slot_at, task_id=job_id),
        )
    elif result is EnqueueResult.ENQUEUED and not job_id:
        logger.info(
            "Recurring task %r for %s is discarded: its limit is reached",
            key,
            slot,
            extra=about("recurring.discarded", recurring_key=key, run_at=slot_at),
        )
    elif result is EnqueueResult.ENQUEUED:
        logger.info(
            "Recurring task %r for %s is job %s",
            key,
            slot,
            job_id,
            extra=about("recurring.enqueued", recurring_key=key, run_at=slot_at, task_id=job_id),
        )


def log_finished(key: str) -> None:
    """Log that a task has no further run."""
    logger.info(
        "Recurring task %r is finished: it has no further run",
        key,
        extra=about("recurring.finished", recurring_key=key),
    )
