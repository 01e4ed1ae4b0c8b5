"""Tasks with callbacks, and tasks that leave calls to their outcome."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from steady_queue_core import Discard, Fail, task
from steady_queue_core.retries import constant

from .effects import record


@task
def told_of_success(result_id: str) -> None:
    """Do nothing."""


@task
def told_of_failure(result_id: str, path: str, message: str) -> None:
    """Do nothing."""


@task
def left(result_id: str) -> None:
    """Do nothing."""


@task(takes_context=True, on_success=told_of_success, on_failure=told_of_failure)
def work(context: Any, seconds: float = 0.0) -> None:
    """Work, leave two calls, and end as the number of the job says."""
    record("start", context)
    context.enqueue(left, context.task_result.id)
    time.sleep(seconds)
    context.enqueue(left, context.task_result.id)
    record("end", context)
    if int(context.task_result.id) % 7 == 3:
        raise Fail("in the task")


@task(
    takes_context=True, max_attempts=50, backoff=constant(0),
    on_success=told_of_success, on_failure=told_of_failure,
)  # fmt: skip
def work_again(context: Any, seconds: float = 0.0) -> None:
    """Work until an attempt ends by itself."""
    work.func(context, seconds)


@task(takes_context=True, on_success=told_of_success, on_failure=told_of_failure)
def kill_itself(context: Any) -> None:
    record("start", context)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


@task(on_success=told_of_success, on_failure=told_of_failure)
def discard() -> None:
    raise Discard("no longer wanted")
