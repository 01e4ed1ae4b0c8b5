"""Telling of jobs whose attempt was lost with the process that made it."""

from __future__ import annotations

from ...logging import about, get_logger
from ...signals import send, task_lost
from .attempt import RunResult

logger = get_logger("steady_queue.supervisor")


def tell_of_loss(result: RunResult) -> None:
    """Log a lost attempt whose outcome is stored, and send ``task_lost``. Does nothing for any
    other result."""
    outcome, error = result.outcome, result.error
    if result.lost_process is None or error is None:
        return
    logger.warning(
        "Job %d was interrupted: %s",
        outcome.job_id,
        error,
        extra=about(
            "task.interrupted",
            task_id=str(outcome.job_id),
            queue=outcome.queue_name,
            attempt=outcome.attempts,
            status=outcome.ending.value,
            error_type=type(error).__name__,
            lost_process=result.lost_process,
        ),
    )
    send(
        task_lost,
        type(result.backend),
        task_result=result.task_result,
        process_name=result.lost_process,
        error=error,
    )
