"""What chains and groups have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async

from ..bulk import Call
from ..compat import AnyTask, Task
from ..dialects.callbacks import ON_FAILURE, ON_FINISH, ON_SUCCESS
from .enqueue import enqueue_graph
from .graph import BatchOptions, Graph, Place
from .placeholders import Previous, has_previous, replaced
from .results import BatchResult


class Steps:
    """Calls, chains and groups that are enqueued together."""

    kind = ""

    def __init__(
        self,
        *steps: Any,
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        on_success: Call | AnyTask | None = None,
        on_failure: Call | AnyTask | None = None,
        on_finish: Call | AnyTask | None = None,
    ) -> None:
        if not steps:
            raise ValueError(f"A {self.kind} needs at least one call.")
        for number, step in enumerate(steps):
            if not isinstance(step, Call | Steps):
                raise TypeError(
                    f"{self.kind}[{number}] is of type {type(step).__name__}; give calls, as "
                    "steady_queue_core.call(task, ...) makes them, chains and groups."
                )
        self.steps = steps
        callbacks = {ON_SUCCESS: on_success, ON_FAILURE: on_failure, ON_FINISH: on_finish}
        self.options = BatchOptions(description, metadata, callbacks)

    def __repr__(self) -> str:
        return f"<{self.kind} of {len(self.steps)}>"

    def __len__(self) -> int:
        return len(self.steps)

    def graph_at(self, place: Place, where: str) -> Graph:
        """Return what it is compiled to."""
        raise NotImplementedError

    def enqueue(self) -> BatchResult:
        """Store everything in one transaction, or in the caller's; return the result.

        Raises what ``task.enqueue()`` raises, and ``ValueError`` for references to results that
        there are none of.
        """
        return enqueue_graph(self.graph_at(Place(), self.kind))

    async def aenqueue(self) -> BatchResult:
        """Async version of :meth:`enqueue`."""
        result: BatchResult = await sync_to_async(self.enqueue, thread_sensitive=True)()
        return result


def stand_ins(step: Any) -> list[Any]:
    """Return the stand-ins for results in the arguments of a step, and of those in it."""
    found: list[Any] = []
    if isinstance(step, Steps):
        for each in step.steps:
            found += stand_ins(each)
    elif isinstance(step, Call):
        replaced([list(step.args), dict(step.kwargs)], found.append)
    return found


def collecting(given: Any) -> Any:
    """Return a call with the result of the step before as its first argument, unless it says where
    that goes."""
    if isinstance(given, Task):
        given = Call(given)
    if not isinstance(given, Call) or has_previous(list(given.args), dict(given.kwargs)):
        return given
    return Call(given.task, (Previous(), *given.args), given.kwargs)
