"""Tasks of Steady Queue: definition, validation and results."""

from __future__ import annotations

from .definition import (
    SteadyQueueTask,
    SteadyQueueTaskContext,
    SteadyQueueTaskResult,
    task,
)

__all__ = ["SteadyQueueTask", "SteadyQueueTaskContext", "SteadyQueueTaskResult", "task"]
