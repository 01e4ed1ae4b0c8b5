"""What a task learns of the attempt that runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from asgiref.sync import sync_to_async

from ..compat import Task, TaskContext
from .cancellation import is_requested


class Calls(Protocol):
    """Keeps the calls that a task leaves to the transaction of its outcome: its ``Outbox``."""

    def enqueue(self, task: Task, args: Any, kwargs: Any, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTaskContext(TaskContext):  # type: ignore[misc]  # The stubs miss frozen=True.
    """The first argument of a task with ``takes_context``."""

    #: The fencing token: grows with every claim of this job. A resource that refuses tokens
    #: smaller than the largest one seen is safe from a worker that lost the job unnoticed.
    token: int
    #: When this attempt has to end, by the database's clock; ``None``: whenever.
    deadline: datetime | None = None
    #: What ``enqueue()`` fills.
    outbox: Calls | None = field(default=None, repr=False, compare=False)

    @property
    def cancel_requested(self) -> bool:
        """Whether the job was cancelled and this attempt is to end."""
        return is_requested(int(self.task_result.id), self.token)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the caller has passed as ``metadata=``."""
        result: Any = self.task_result
        return dict(result.metadata)

    def enqueue(self, task: Task, /, *args: Any, **kwargs: Any) -> None:
        """Enqueue a call of ``task`` if this attempt succeeds, in the transaction of its outcome;
        otherwise, nothing becomes of it.

        Arguments are checked and encoded at once. There is no result: the job has no id until it
        is stored. Calls are stored in their order; a ``run_after`` timedelta counts from then.

        Raises what ``task.enqueue()`` raises; ``InvalidTask`` if ``task`` stores its jobs in
        another database; ``OutboxFullError`` and ``OutboxClosedError``.
        """
        if self.outbox is None:
            raise RuntimeError("This context does not belong to an attempt.")
        self.outbox.enqueue(task, args, kwargs)

    async def aenqueue(self, task: Task, /, *args: Any, **kwargs: Any) -> None:
        """Async version of :meth:`enqueue`, for keys and middleware that query a database."""
        await sync_to_async(self.enqueue, thread_sensitive=True)(task, *args, **kwargs)
