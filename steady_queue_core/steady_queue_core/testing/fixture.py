"""The test kit as one object, for the pytest fixture."""

from __future__ import annotations

from .assertions import assert_no_tasks_enqueued, assert_num_tasks, assert_task_enqueued
from .enqueued import EnqueuedTask, captured_tasks, enqueued_tasks
from .memory import forget
from .runner import arun_enqueued_tasks, run_enqueued_tasks


class TaskQueueFixture:
    """What the fixture ``steady_queue`` gives; it begins with nothing in memory."""

    run = staticmethod(run_enqueued_tasks)
    arun = staticmethod(arun_enqueued_tasks)
    captured = staticmethod(captured_tasks)
    assert_enqueued = staticmethod(assert_task_enqueued)
    assert_num_enqueued = staticmethod(assert_num_tasks)
    assert_none_enqueued = staticmethod(assert_no_tasks_enqueued)

    def __init__(self) -> None:
        forget()

    @property
    def enqueued(self) -> list[EnqueuedTask]:
        """All that the test has enqueued."""
        return enqueued_tasks()
