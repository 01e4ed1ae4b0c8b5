"""The delay of a retry, by the back-off of a task or of its backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...compat import Task, TaskResult
from ...configuration import ConfigurationError
from ...dialects import ClaimedJob
from ...logging import get_logger
from ...retries import delay_of
from ...tasks.definition import SteadyQueueTask
from ..base.log_context import about_job

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

logger = get_logger("steady_queue.worker")


def backoff_delay(
    error: BaseException,
    claim: ClaimedJob,
    task: Task,
    backend: SteadyQueueBackend,
    task_result: TaskResult,
) -> float | None:
    """Return the seconds until the next attempt; ``None``: the back-off gives up, or fails."""
    backoff = task.backoff if isinstance(task, SteadyQueueTask) else None
    try:
        return delay_of(backoff or backend.settings.resolve_backoff(), error, task_result)
    except (ConfigurationError, ValueError):
        logger.exception(
            "The back-off of task %s failed: no retry",
            claim.task_path,
            extra=about_job("task.backoff_failed", claim),
        )
        return None
