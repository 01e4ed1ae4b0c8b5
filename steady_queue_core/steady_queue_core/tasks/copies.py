"""Copies of tasks that are not validated: with changes, or out of a pickle."""

from __future__ import annotations

import sys
from dataclasses import fields
from importlib import import_module
from pickle import PicklingError
from types import ModuleType
from typing import Any, cast

from ..compat import Task
from .registry import QueuedTask, known_task


def field_names(task_class: type[Task]) -> set[str]:
    """Return the names of the fields of a class of tasks."""
    return {each.name for each in fields(task_class)}


def rebuilt(task: Task, **changes: Any) -> Any:
    """Return ``task`` with ``changes``, unvalidated: a job may be older than a setting that refuses
    its task today."""
    copy = object.__new__(type(task))
    for each in fields(task):
        object.__setattr__(copy, each.name, changes.get(each.name, getattr(task, each.name)))
    return copy


def reduced(task: Task) -> tuple[Any, ...]:
    """Return ``task`` for ``pickle``: what differs from the declared task, for limits and keys may
    have functions without a name. Raises ``PicklingError``."""
    path = task.module_path
    declared = _declared(path, sys.modules.get(path.rpartition(".")[0]))
    if type(declared) is not type(task):
        raise PicklingError(f"Task {path!r} is not declared in this process.")
    changes = {
        name: getattr(task, name)
        for name in sorted(field_names(type(task)) - {"func"})
        if getattr(task, name) != getattr(declared, name)
    }
    return unpickled, (path, changes)


def unpickled(path: str, changes: dict[str, Any]) -> Any:
    """Return the task that is declared at ``path`` with ``changes``. Raises ``ValueError``, as the
    tasks of Django do."""
    try:
        module = import_module(path.rpartition(".")[0])
    except (ImportError, ValueError):
        module = None
    declared = _declared(path, module)
    if declared is None:
        raise ValueError(f"Expected {path!r} to point to a Task instance.")
    return rebuilt(declared, **changes)


# Where processes of the release before look for it, which may read the same cache.
unpickled.__module__ = "steady_queue_core.tasks.definition"


def _declared(path: str, module: ModuleType | None) -> Task | None:
    """Return the task that a module has by this path, or that is registered by it."""
    found: Any = getattr(module, path.rpartition(".")[2], None)
    if issubclass(type(found), QueuedTask) and found.module_path == path:
        return cast("Task", found)
    return known_task(path)
