"""What the decorators of tasks with limits have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from ..compat import AnyTask, Task
from .keys import Key

TaskT = TypeVar("TaskT", bound=AnyTask)


def declaring(name: str, field: str, limit: object) -> Callable[[TaskT], TaskT]:
    """Return a decorator, called ``name`` in errors, that sets ``field`` of a task."""

    def decorate(task: TaskT) -> TaskT:
        if isinstance(task, type) or not isinstance(task, Task):
            raise TypeError(
                f"{name} decorates {task!r}, which is not a task; put it above @task(), not below"
            )
        if not hasattr(task, field):
            return task  # Another backend, such as Django's own in tests, knows no limits.
        if getattr(task, field) is not None:
            raise ValueError(
                f"{name} decorates {task.module_path} a second time: a task has one such limit. "
                "Leave one of them out, or combine what they count by in one key."
            )
        changes: dict[str, Any] = {field: limit}
        return replace(task, **changes)

    return decorate


def checked_key(key: object, name: str) -> Key:
    """Return a valid key. Raises ``TypeError`` that names the decorator."""
    if isinstance(key, str) or callable(key):
        return key
    raise TypeError(f"{name}: key must be a string or a callable, not {type(key).__name__}")
