"""Middleware that does something around each enqueue and each attempt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..compat import TaskResult
from ..middleware import CallT, Middleware


class Publication(AbstractContextManager["Publication"], Protocol):
    """What is around an enqueue."""

    @property
    def calls(self) -> Sequence[Any]:
        """The calls, with what is to go with their jobs."""

    def note_stored(self, results: Sequence[TaskResult]) -> None:
        """Take note of what was enqueued."""


class Surrounding(Middleware):
    """Enters what its subclass makes of an enqueue or an attempt; ``None`` stands for nothing."""

    @abstractmethod
    def around_enqueue(self, calls: Sequence[Any]) -> Publication | None:
        """Return what is to be around an enqueue. It may not raise."""

    @abstractmethod
    def around_attempt(self, context: Any) -> AbstractContextManager[Any] | None:
        """Return what is to be around an attempt. It may not raise."""

    def enqueue(
        self, calls: Sequence[CallT], proceed: Callable[[Sequence[CallT]], list[TaskResult]]
    ) -> list[TaskResult]:
        """Store calls inside of it."""
        publication = self.around_enqueue(calls) if calls else None
        if publication is None:
            return proceed(calls)
        with publication:
            results = proceed(publication.calls)
            publication.note_stored(results)
        return results

    def execute(self, context: Any, proceed: Callable[[], Any]) -> Any:
        """Run a function inside of it."""
        surrounding = self.around_attempt(context)
        if surrounding is None:
            return proceed()
        with surrounding:
            return proceed()

    async def aexecute(self, context: Any, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Async version of :meth:`execute`."""
        surrounding = self.around_attempt(context)
        if surrounding is None:
            return await proceed()
        with surrounding:
            return await proceed()
