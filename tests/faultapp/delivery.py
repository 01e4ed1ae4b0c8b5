"""Tasks of each delivery. What a transactional one writes names its job."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from steady_queue_core import limits_concurrency, task
from steady_queue_core.retries import constant

from .effects import record
from .models import Note


def write_a_row(context: Any, seconds: float = 0.0) -> int:
    """Write a row, and stay in the transaction for so many seconds."""
    record("start", context)
    Note.objects.create(text=context.task_result.id)
    record("written", context)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.01))
    record("end", context)
    return int(context.token)


@task(delivery="transactional", takes_context=True, max_attempts=1000, backoff=constant(0))
def insert(context: Any, seconds: float = 0.0) -> int:
    return write_a_row(context, seconds)


@limits_concurrency(key="one", group="delivery")
@task(delivery="transactional", takes_context=True, max_attempts=1000, backoff=constant(0))
def insert_alone(context: Any, seconds: float = 0.0) -> int:
    return write_a_row(context, seconds)


@limits_concurrency(key="one", group="delivery")
@task(takes_context=True)
def work_alone(context: Any, seconds: float = 0.0) -> int:
    """Work under the same limit."""
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return int(context.token)


@task(delivery="at_least_once", takes_context=True, backoff=constant(0))
def work_at_least_once(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return int(context.token)


@task(delivery="at_least_once", takes_context=True, backoff=constant(0), max_crashes=3)
def poison(context: Any) -> None:
    """Take the process along."""
    record("start", context)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


@task(delivery="at_most_once", takes_context=True)
def work_at_most_once(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return int(context.token)


@task(delivery="transactional", takes_context=True)
def insert_beside_a_copy(context: Any) -> int:
    """Fork a process that fails in the middle of the transaction, and go on when it has ended."""
    record("start", context)
    Note.objects.create(text=context.task_result.id)
    if os.fork() == 0:
        raise LookupError("in the copy")
    os.wait()
    record("end", context)
    return int(context.token)
