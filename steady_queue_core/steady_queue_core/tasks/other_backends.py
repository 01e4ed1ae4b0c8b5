"""Enqueues tasks of Steady Queue through other backends, such as Django's own for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from ..compat import BaseTaskBackend, Task, TaskResult, TaskResultStatus, normalize_json
from .task_result import evolve

#: The fields of a result until the task is enqueued.
PENDING: dict[str, Any] = {
    "id": "", "status": TaskResultStatus.READY, "enqueued_at": None, "started_at": None,
    "finished_at": None, "last_attempted_at": None, "errors": [], "worker_ids": [],
}  # fmt: skip


def enqueue(
    backend: BaseTaskBackend,
    task: Any,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    make_result: Callable[..., TaskResult],
) -> TaskResult:
    """Enqueue a call of ``task`` through a ``backend`` of another package.

    Raises ``TypeError`` for arguments that are not JSON values, and the backend's own errors.
    """
    _require_plain(backend, task, [*enumerate(args), *kwargs.items()])
    result = make_result(
        **PENDING, task=task, args=list(args), kwargs=dict(kwargs), backend=task.backend
    )

    def enqueue_now() -> None:
        dated = task.dated()
        _copy_state(result, backend.enqueue(dated, list(args), dict(kwargs)))
        evolve(result, task=dated)

    using = _open_transaction() if task.enqueue_on_commit else None
    if using is None:
        enqueue_now()
    else:
        transaction.on_commit(enqueue_now, using=using)
    return result


def _require_plain(
    backend: BaseTaskBackend, task: Task, named: Sequence[tuple[int | str, object]]
) -> None:
    for name, value in named:
        try:
            normalize_json(value)
        except TypeError as error:
            where = f"args[{name}]" if isinstance(name, int) else f"kwargs[{name!r}]"
            raise TypeError(
                f"{where} of {task.module_path}: {error}. {type(backend).__module__}."
                f"{type(backend).__qualname__} accepts only JSON values; in tests, the backends of "
                "steady_queue_core.testing accept all that SteadyQueueBackend does."
            ) from None


def _open_transaction() -> str | None:
    opened = [c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block]
    return DEFAULT_DB_ALIAS if DEFAULT_DB_ALIAS in opened else next(iter(opened), None)


def _copy_state(result: TaskResult, found: TaskResult) -> None:
    names = {each.name for each in fields(found)} - {"task", "args", "kwargs"}
    evolve(result, **{name: getattr(found, name) for name in names})
