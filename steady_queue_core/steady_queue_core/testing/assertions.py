"""Assertions about enqueued tasks, as functions and as methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..compat import AnyTask
from .enqueued import EnqueuedTask, enqueued_tasks
from .memory import forget

if TYPE_CHECKING:
    from django.test import SimpleTestCase as _Case
else:
    _Case = object

#: Most calls that a message names.
MOST = 20


def assert_task_enqueued(
    task: AnyTask,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    run_after: datetime | timedelta | None = None,
    times: int | None = None,
    among: Iterable[EnqueuedTask] | None = None,
) -> EnqueuedTask:
    """Fail unless a matching call of ``task`` was enqueued; return the first one.

    ``times``: the exact number of matching calls. ``among``: the calls to search, such as those of
    ``captured_tasks()``, instead of all calls of the test.
    """
    enqueued = _enqueued(among)
    fitting = [
        each
        for each in enqueued
        if each.is_of(task)
        and each.has_arguments(args, kwargs)
        and (queue_name is None or each.queue_name == queue_name)
        and (priority is None or each.priority == priority)
        and (run_after is None or each.is_due(run_after))
    ]
    if not fitting or (times is not None and len(fitting) != times):
        wanted = {
            "args": args, "kwargs": kwargs, "queue_name": queue_name, "priority": priority,
            "run_after": run_after,
        }  # fmt: skip
        named = [f"{name}={value!r}" for name, value in wanted.items() if value is not None]
        given = f" with {', '.join(named)}" if named else ""
        number = "never" if not fitting else f"{len(fitting)} times, not {times},"
        raise AssertionError(
            f"{task.module_path} was {number} enqueued{given}. {_listed(enqueued)}"
        )
    return fitting[0]


def assert_num_tasks(
    number: int, task: AnyTask | None = None, *, among: Iterable[EnqueuedTask] | None = None
) -> None:
    """Fail unless ``number`` calls were enqueued, of ``task`` or in all."""
    enqueued = _enqueued(among)
    found = [each for each in enqueued if task is None or each.is_of(task)]
    if len(found) != number:
        what = "calls" if task is None else f"calls of {task.module_path}"
        raise AssertionError(
            f"{len(found)} {what} were enqueued, not {number}. {_listed(enqueued)}"
        )


def assert_no_tasks_enqueued(
    task: AnyTask | None = None, *, among: Iterable[EnqueuedTask] | None = None
) -> None:
    """Fail if anything was enqueued, or any call of ``task``."""
    assert_num_tasks(0, task, among=among)


class TaskAssertions(_Case):
    """The assertions as a mixin for test cases. Each test begins without jobs in memory."""

    def run(self, result: Any = None) -> Any:
        forget()
        return super().run(result)

    assertTaskEnqueued = staticmethod(assert_task_enqueued)
    assertNumTasks = staticmethod(assert_num_tasks)
    assertNoTasksEnqueued = staticmethod(assert_no_tasks_enqueued)


def _enqueued(among: Iterable[EnqueuedTask] | None) -> list[EnqueuedTask]:
    return enqueued_tasks() if among is None else list(among)


def _listed(enqueued: Sequence[EnqueuedTask]) -> str:
    if not enqueued:
        return "Nothing was enqueued."
    lines = [f"\n  {each}" for each in enqueued[:MOST]]
    more = len(enqueued) - MOST
    return f"Enqueued:{''.join(lines)}" + (f"\n  and {more} more" if more > 0 else "")
