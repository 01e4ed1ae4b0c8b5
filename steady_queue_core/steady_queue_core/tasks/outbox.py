"""The calls that a task leaves to the transaction of its outcome."""

from __future__ import annotations

import json
from typing import Any

from ..compat import InvalidTask, Task
from ..dialects import FollowUp
from ..errors import OutboxClosedError, OutboxFullError
from .callbacks import share_a_database
from .placement import beside

#: Most calls of one attempt, and the most bytes of their arguments and metadata, as JSON.
MOST_CALLS = 1000
MOST_BYTES = 8 << 20


class Outbox:
    """The calls of one attempt, in their order. They are stored if it succeeds."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._calls: list[Any] = []
        self._bytes = 0
        self._is_closed = False

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> None:
        """Add a call. Raises ``InvalidTask``, ``TypeError`` if the function does not accept the
        arguments, ``TaskArgumentError`` if they cannot be stored, ``OutboxFullError`` and
        ``OutboxClosedError``."""
        if not isinstance(task, Task):
            raise InvalidTask(
                f"context.enqueue() needs a task, not {type(task).__name__}. Put @task on the "
                "function."
            )
        task = beside(task, self._backend)
        backend: Any = task.get_backend()
        if not share_a_database(self._backend, backend):
            raise InvalidTask(
                f"{task.module_path} uses the backend {task.backend!r}, which does not store its "
                f"jobs in the database of {self._backend.alias!r}: it cannot be enqueued in the "
                "transaction of an outcome there. Call its own enqueue()."
            )
        calls = [backend.encode(task, list(args), kwargs)]
        if (chain := backend.middleware) is None:
            self._keep(calls)
        else:
            chain.enqueue(calls, self._keep)

    def close(self) -> tuple[FollowUp, ...]:
        """Return the jobs of the calls. No more are accepted."""
        self._is_closed = True
        return tuple(FollowUp(call.task.get_backend().new_job(call), call) for call in self._calls)

    def _keep(self, calls: Any) -> list[Any]:
        if self._is_closed:
            raise OutboxClosedError(
                "context.enqueue() was called after the task had returned: the outcome of its job "
                "is on its way."
            )
        for call in calls:
            size = len(json.dumps([call.arguments, call.metadata]))
            if len(self._calls) >= MOST_CALLS or self._bytes + size > MOST_BYTES:
                raise OutboxFullError(
                    f"An attempt can leave {MOST_CALLS} calls with {MOST_BYTES >> 20} MiB of "
                    "arguments to the transaction of its outcome, and has tried to leave more. Let "
                    "one of them enqueue the others."
                )
            self._bytes += size
            self._calls.append(call)
        return [call.task.get_backend().new_result(call) for call in calls]
