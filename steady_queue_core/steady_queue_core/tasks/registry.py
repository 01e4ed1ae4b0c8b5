"""The registry: the tasks that jobs can name, by their paths."""

from __future__ import annotations

import sys

from ..compat import BaseTaskBackend, InvalidTask, InvalidTaskBackend, Task
from ..errors import UnregisteredTaskError
from ..features.declared import LIMITS
from .own_tasks import own_task_at

#: Tasks by module path. A row can only choose among these.
_registered: dict[str, Task] = {}


class QueuedTask:
    """The base of the task classes of Steady Queue."""

    __slots__ = ()


def runs_ours(backend: BaseTaskBackend) -> bool:
    """Whether a backend is part of Steady Queue."""
    return issubclass(backend.task_class, QueuedTask)


def register(task: Task) -> None:
    """Register ``task``, so that jobs can name it. Decorating the function again replaces it, as
    do the variants with a limit that ``@limits_concurrency`` and ``@limits_rate`` create."""
    known = _registered.get(task.module_path)
    if known is None or known.func is not task.func or _limits(task) != _limits(known):
        _registered[task.module_path] = task


def _limits(task: Task) -> list[int]:
    # By identity: each decoration makes others.
    return [id(getattr(task, name, None)) for name in LIMITS]


def registered_tasks() -> list[Task]:
    """Return all tasks that are registered so far."""
    return list(_registered.values())


def known_task(path: str) -> Task | None:
    """Return the task at ``path`` as ``find_task`` does, or ``None``."""
    return _registered.get(path) or own_task_at(path) or _variant(path)


def find_task(path: str) -> Task:
    """Return the task that is declared at ``path`` for a backend of Steady Queue: decorated for it,
    or made by ``using(backend=...)`` in the module of its function.

    Never imports anything, except where a task of Steady Queue itself is. Raises
    ``UnregisteredTaskError``.
    """
    task = known_task(path)
    if task is None:
        raise UnregisteredTaskError(
            f"Task {path!r} is not registered in this process. Define it with @task in the "
            "tasks.py of an installed app, or name its module in "
            "STEADY_QUEUE['task_modules']; if it was renamed, keep the old name until its "
            "jobs are done."
        )
    return task


def require_declared(task: Task) -> None:
    """Raise ``InvalidTask`` for a task of another backend that is not declared for workers."""
    if known_task(task.module_path) is not None:
        return
    module, _, name = task.module_path.rpartition(".")
    raise InvalidTask(
        f"{task.module_path} is not declared for {task.backend!r} or another backend of Steady "
        f"Queue: its workers would refuse to run it. Declare it in {module}: "
        f"{name}_queued = {name}.using(backend={task.backend!r})"
    )


def _variant(path: str) -> Task | None:
    """Return the variant for Steady Queue that the module of ``path`` makes of another task."""
    module = sys.modules.get(path.rpartition(".")[0])
    for value in list(getattr(module, "__dict__", {}).values()):
        # By type(): reading the __class__ of a lazy object would evaluate it.
        if issubclass(type(value), Task) and value.module_path == path and _is_ours(value):
            _registered[path] = value
            return _registered[path]
    return None


def _is_ours(task: Task) -> bool:
    try:
        return runs_ours(task.get_backend())
    except InvalidTaskBackend:
        return False
