"""Finds task modules that workers do not import, and queues that no task uses."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from django.apps import apps
from django.conf import settings

from ..dialects import QueueSelector
from .registry import registered_tasks

#: Modules that ``task`` is imported from.
SOURCES = ("steady_queue_core", "steady_queue_core.tasks", "django.tasks", "django_tasks")


def modules_left_out(task_modules: Iterable[str]) -> list[str]:
    """Return the modules with tasks outside of the installed apps and ``task_modules``, among the
    imported modules and the packages in the project's folder."""
    # A function made by exec() may have no module.
    imported = {task.func.__module__ for task in registered_tasks() if task.func.__module__}
    known = (*(config.name for config in apps.get_app_configs()), *task_modules)
    found = {module for module in imported | _task_files() if not _is_of_tests(module)}
    return sorted(module for module in found if not _is_within(module, known))


def queues_without_tasks(
    workers: Iterable[Sequence[str]], declared: Collection[str]
) -> list[Sequence[str]]:
    """Return the queue lists of workers that match neither the queue of a task nor one of the
    ``declared`` names."""
    named = sorted({task.queue_name for task in registered_tasks()}.union(declared))
    return [queues for queues in workers if not _any_served(queues, named)]


def _any_served(queues: Sequence[str], names: Sequence[str]) -> bool:
    selector = QueueSelector.of(queues)
    served = selector.matching(
        lambda prefix: [name for name in names if name.startswith(prefix)], frozenset()
    )
    return selector.takes_all or not set(names).isdisjoint(served)


def _task_files() -> set[str]:
    """Return the ``tasks`` modules of the packages in the project's folder."""
    root = getattr(settings, "BASE_DIR", None)
    if root is None:
        return set()
    files = [file for file in Path(root).glob("*/tasks.py") if file.parent.name.isidentifier()]
    return {f"{file.parent.name}.tasks" for file in files if _has_tasks(file)}


def _has_tasks(file: Path) -> bool:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module in SOURCES
        and any(name.name == "task" for name in node.names)
        for node in ast.walk(tree)
    )


def _is_of_tests(module: str) -> bool:
    parts = module.split(".")
    return module == "__main__" or any(
        part == "conftest" or part.startswith("test") for part in parts
    )


def _is_within(module: str, names: Iterable[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)
