"""Tasks that stand in for others, and that nobody finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ..compat import DEFAULT_TASK_PRIORITY, DEFAULT_TASK_QUEUE_NAME, Task
from ..errors import UnregisteredTaskError
from .definition import SteadyQueueTask


def unregistered(path: str, backend: str) -> Task:
    """Return a stand-in for an unregistered task, to show its results."""

    def missing(*args: Any, **kwargs: Any) -> None:
        raise UnregisteredTaskError(f"Task {path!r} is not registered in this process.")

    missing.__module__, _, missing.__qualname__ = path.rpartition(".")
    missing.__name__ = missing.__qualname__
    return undeclared(missing, backend)


def undeclared(function: Callable[..., Any], backend: str, **options: Any) -> Task:
    """Return a task that is neither validated nor registered."""
    made = object.__new__(SteadyQueueTask)
    # Not all of these have defaults in Django 6.0.
    values: dict[str, Any] = {
        "func": function,
        "priority": DEFAULT_TASK_PRIORITY,
        "backend": backend,
        "queue_name": DEFAULT_TASK_QUEUE_NAME,
        "run_after": None,
        **options,
    }
    for each in fields(SteadyQueueTask):
        value = values.get(each.name, each.default)
        object.__setattr__(made, each.name, value)
    return made
