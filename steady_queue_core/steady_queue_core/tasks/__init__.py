"""Tasks of this backend, what makes one valid, and their results."""

from __future__ import annotations

from .definition import (
    SteadyQueueTask,
    SteadyQueueTaskContext,
    SteadyQueueTaskResult,
    task,
)

__all__ = ["SteadyQueueTask", "SteadyQueueTaskContext", "SteadyQueueTaskResult", "task"]
