"""Tasks of Steady Queue: definition, validation and results.

Running a task is in ``processes/worker``.
"""

from __future__ import annotations

from .definition import SteadyQueueTask, task
from .task_context import SteadyQueueTaskContext
from .task_result import SteadyQueueTaskResult

__all__ = ["SteadyQueueTask", "SteadyQueueTaskContext", "SteadyQueueTaskResult", "task"]
