"""What a task learns of the attempt that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..compat import TaskContext
from .cancellation import is_requested


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTaskContext(TaskContext):  # type: ignore[misc]  # The stubs miss frozen=True.
    """The first argument of a task with ``takes_context``."""

    #: The fencing token: grows with every claim of this job. A resource that refuses tokens
    #: smaller than the largest one seen is safe from a worker that lost the job unnoticed.
    token: int

    @property
    def cancel_requested(self) -> bool:
        """Whether the job was cancelled and this attempt is to end."""
        return is_requested(int(self.task_result.id), self.token)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the caller has passed as ``metadata=``."""
        result: Any = self.task_result
        return dict(result.metadata)
