"""Log records of attempts after which a job goes on, or ends without a failure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...dialects import ClaimedJob, Outcome
from ...features.meaning import Meaning
from ...logging import get_logger
from ..base.log_context import about_job, milliseconds

logger = get_logger("steady_queue.worker")


def log_meaning(claim: ClaimedJob, meaning: Meaning, **details: Any) -> None:
    """Log what a feature says of the end of an attempt, if it says anything."""
    if (report := meaning.report) is not None:
        logger.info(
            report.text,
            claim.job_id,
            claim.task_path,
            *report.values,
            extra=about_job(report.event, claim, **details),
        )


def log_retry(
    claim: ClaimedJob,
    outcome: Outcome,
    error_type: str,
    started_at: datetime,
    ended_at: datetime,
) -> None:
    """Log that an attempt has failed and another one follows."""
    logger.info(
        "Task id=%s path=%s failed in attempt %d of %d, retry in %.1f s: %s",
        claim.job_id,
        claim.task_path,
        outcome.attempts,
        claim.max_attempts,
        outcome.delay,
        error_type,
        extra=about_job(
            "task.retried",
            claim,
            status=outcome.ending.value,
            error_type=error_type,
            delay_ms=round(outcome.delay * 1000),
            duration_ms=milliseconds(started_at, ended_at),
        ),
    )
