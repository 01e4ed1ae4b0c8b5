"""The result of a task, as the caller gets and refreshes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, ParamSpec, TypeVar, cast

from asgiref.sync import sync_to_async

from ..compat import GenericTaskResult, InvalidTaskBackend, TaskResult, task_backends
from ..payloads import PayloadError
from ..progress import Progress

P = ParamSpec("P")
R = TypeVar("R")

#: What changes of a result while its job goes on.
_CHANGING = (
    "_return_value", "enqueued_at", "errors", "finished_at", "last_attempted_at", "metadata",
    "progress", "started_at", "status", "worker_ids",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTaskResult(GenericTaskResult[P, R], Generic[P, R]):  # type: ignore[misc]  # The stubs miss frozen=True.
    """A result whose arguments keep types that JSON does not have."""

    #: Whether the call was dropped, because its concurrency limit was reached and its task
    #: discards on conflict. Such a result has no id, and counts as failed.
    discarded: bool = False
    #: Whether it is the result of another job, which has the unique key of this call.
    duplicate: bool = False
    #: What the caller has passed as ``metadata=``, and under ``"discarded"`` why the task has
    #: discarded itself.
    metadata: dict[str, Any] = field(default_factory=dict)
    #: How far the task has come; ``None`` if it has not told.
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Keep the arguments as they are; the encoder has validated them."""

    def __repr__(self) -> str:
        """Return what it is the result of, without the arguments: reports of errors show it."""
        path, name = self.task.module_path, type(self).__name__
        return f"<{name} {self.id or 'without a job'} of {path}: {self.status}>"

    def refresh(self) -> None:
        """Read the result again from where the job is stored."""
        self._take_over(self.task.get_backend().get_result(self.id))

    async def arefresh(self) -> None:
        """Async version of :meth:`refresh`."""
        self._take_over(await self.task.get_backend().aget_result(self.id))

    def _take_over(self, present: TaskResult) -> None:
        evolve(self, **{name: getattr(present, name) for name in _CHANGING})

    def wait(self, timeout: float | timedelta | None = None) -> SteadyQueueTaskResult[P, R]:
        """Wait until the job has ended, at most ``timeout`` seconds; return this result, refreshed.

        Raises ``TimeoutError``; ``TaskResultDoesNotExist`` if the job is deleted; and
        ``TransactionManagementError`` in a transaction that would never see the end.
        """
        from . import waiting

        waiting.wait(self, timeout)
        return self

    async def await_result(
        self, timeout: float | timedelta | None = None
    ) -> SteadyQueueTaskResult[P, R]:
        """Async version of :meth:`wait`."""
        from . import waiting

        await waiting.await_result(self, timeout)
        return self

    def cancel(self) -> bool:
        """Cancel the job; return whether it was waiting or running.

        A waiting job fails with ``TaskCancelled`` at once. A running one is interrupted by its
        worker within about a second; it may still finish first. ``refresh()`` tells what became of
        it. Raises ``InvalidTaskBackend`` if the backend cannot cancel, and ``ValueError`` if the
        job is not stored yet.
        """
        backend: Any = task_backends[self.backend]
        if not hasattr(backend, "cancel"):
            raise InvalidTaskBackend(f"The backend {self.backend!r} cannot cancel tasks.")
        if not self.id:
            if self.discarded:
                return False
            raise ValueError("The job is not stored yet: the transaction has not committed.")
        return bool(backend.cancel(self.id))

    async def acancel(self) -> bool:
        """Async version of :meth:`cancel`."""
        cancelled: bool = await sync_to_async(self.cancel, thread_sensitive=True)()
        return cancelled

    @property
    def return_value(self) -> R:
        """What the task returned.

        Raises ``ValueError`` if it has not finished or has failed, and ``payloads.PayloadError`` if
        the stored value cannot be trusted or unpacked.
        """
        value: Any = TaskResult.return_value.__get__(self)
        if isinstance(value, PayloadError):
            raise value
        return cast(R, value)


def evolve(result: TaskResult, /, **changes: Any) -> None:
    """Change fields of a result, which is frozen for everybody else."""
    for name, value in changes.items():
        object.__setattr__(result, name, value)
