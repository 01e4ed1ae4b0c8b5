"""What the log says of the runs of recurring tasks."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ...logging import about, get_logger
from .recurring_run import Attempt, EnqueueResult

logger = get_logger("steady_queue.scheduler")


class Line(NamedTuple):
    """What a result is told as; ``text`` is about the key, the slot and the job."""

    event: str
    text: str
    level: int = logging.INFO


DISCARDED = Line(
    "recurring.discarded", "Recurring task %r for %s is discarded: its limit is reached"
)
LINES = {
    EnqueueResult.DISABLED: Line(
        "recurring.disabled", "Recurring task %r for %s is disabled", logging.DEBUG
    ),
    EnqueueResult.ENQUEUED: Line("recurring.enqueued", "Recurring task %r for %s is job %s"),
    EnqueueResult.SKIPPED: Line(
        "recurring.skipped",
        "Recurring task %r for %s is left out: its previous run, job %s, has not ended",
    ),
    EnqueueResult.WAITING: Line(
        "recurring.waiting",
        "Recurring task %r for %s waits for the end of its previous run, job %s",
    ),
}


def log_attempt(key: str, attempt: Attempt) -> None:
    """Log what came of the attempt to enqueue a run, unless that is for others to tell."""
    line = LINES.get(attempt.result)
    if line is None:
        return
    if attempt.result is EnqueueResult.ENQUEUED and not attempt.job_id:
        line = DISCARDED
    job = {"task_id": attempt.job_id} if attempt.job_id else {}
    logger.log(
        line.level,
        line.text,
        key,
        attempt.slot,
        *job.values(),
        extra=about(line.event, recurring_key=key, run_at=attempt.slot.isoformat(), **job),
    )


def log_finished(key: str) -> None:
    """Log that a task has no further run."""
    logger.info(
        "Recurring task %r is finished: it has no further run",
        key,
        extra=about("recurring.finished", recurring_key=key),
    )
