"""What the tests of a project need: run what was enqueued, look at it, and backends that need no
database. See ``docs/testing.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertions import (
        TaskAssertions,
        assert_no_tasks_enqueued,
        assert_num_tasks,
        assert_task_enqueued,
    )
    from .backends import DummyBackend, ImmediateBackend
    from .enqueued import EnqueuedTask, captured_tasks, enqueued_tasks
    from .overriding import override_backends
    from .runner import arun_enqueued_tasks, run_enqueued_tasks

__all__ = [
    "DummyBackend",
    "EnqueuedTask",
    "ImmediateBackend",
    "TaskAssertions",
    "arun_enqueued_tasks",
    "assert_no_tasks_enqueued",
    "assert_num_tasks",
    "assert_task_enqueued",
    "captured_tasks",
    "enqueued_tasks",
    "override_backends",
    "run_enqueued_tasks",
]

_PLACES = {
    "assertions": (
        "TaskAssertions", "assert_no_tasks_enqueued", "assert_num_tasks",
        "assert_task_enqueued",
    ),
    "backends": ("DummyBackend", "ImmediateBackend"),
    "enqueued": ("EnqueuedTask", "captured_tasks", "enqueued_tasks"),
    "overriding": ("override_backends",),
    "runner": ("arun_enqueued_tasks", "run_enqueued_tasks"),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # On first use: the backends are named in settings, and needed before there are models.
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
