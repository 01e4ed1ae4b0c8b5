"""Results of chains, groups and workflows."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Self

from asgiref.sync import sync_to_async

from ..compat import DEFAULT_TASK_BACKEND_ALIAS, TaskResultStatus
from ..dialects.membership import CHAIN
from .backends import storing_backend
from .handle import BatchHandle


class BatchResult(BatchHandle):
    """The result of a chain, group or workflow as it was when it was read last. ``await`` it, or
    ``wait()``, for its end."""

    @classmethod
    def get(cls, batch_id: int, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Self:
        """Return the result with this id. Raises ``BatchDoesNotExist``."""
        return cls.of(batch_id, storing_backend(backend))

    @classmethod
    def stored(cls, batch_id: int, backend: Any) -> Self:
        """Return the result of what was stored just now; it is read when somebody asks."""
        result = cls(backend)
        result._set_id(batch_id)
        return result

    @property
    def kind(self) -> str:
        """``"chain"``, ``"group"`` or ``"workflow"``."""
        return str(self._stored.kind)

    def values(self) -> list[Any]:
        """Return the return values of the members in their order: of a group the list of its
        values, of a chain in it that of its last step.

        Raises ``ValueError`` that names the first job that has not succeeded.
        """
        return [_value(each) for each in self.results()]

    async def avalues(self) -> list[Any]:
        """Async version of :meth:`values`."""
        found: list[Any] = await sync_to_async(self.values, thread_sensitive=True)()
        return found

    def __await__(self) -> Generator[Any, None, Self]:
        return self.await_result().__await__()


def _value(result: Any) -> Any:
    if isinstance(result, BatchHandle):
        kind, inner = result._stored.kind, result.results()
        return _value(inner[-1]) if kind == CHAIN else [_value(each) for each in inner]
    if result.status is not TaskResultStatus.SUCCESSFUL:
        raise ValueError(
            f"Job {result.id} of {result.task.module_path} has not succeeded: it is "
            f"{result.status.value.lower()}. results() has what there is."
        )
    return result.return_value
