"""What the log says of the runs of recurring tasks, and signals tell."""

from __future__ import annotations

from datetime import datetime

from ...logging import about, get_logger
from ...signals import Recurring, recurring_enqueued, recurring_missed, send
from .recurring_run import Attempt, EnqueueResult

logger = get_logger("steady_queue.scheduler")


def announce(key: str, attempt: Attempt, using: str) -> None:
    """Log what came of the attempt to enqueue a run, unless that is for others to tell, and signal
    that it was enqueued."""
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
        send(recurring_enqueued, Recurring, key=key, run_at=slot, task_id=job_id, using=using)


def announce_missed(key: str, since: datetime, reason: str, using: str) -> None:
    """Log and signal that slots were missed, and why."""
    logger.warning(
        "Recurring task %r missed slots from %s on: %s",
        key,
        since,
        reason,
        extra=about("recurring.missed", recurring_key=key),
    )
    send(recurring_missed, Recurring, key=key, since=since, using=using)


def log_finished(key: str) -> None:
    """Log that a task has no further run."""
    logger.info(
        "Recurring task %r is finished: it has no further run",
        key,
        extra=about("recurring.finished", recurring_key=key),
    )
