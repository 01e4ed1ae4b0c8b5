"""Jobs in batches, which add to them, fail and are killed, and their callbacks."""

from __future__ import annotations

import time
from typing import Any

from steady_queue_core import Batch, Fail, call, enqueue_many, task
from steady_queue_core.retries import constant

from .effects import record


@task(takes_context=True)
def told(context: Any, name: str) -> None:
    """Do nothing: the row of the job says it all."""


@task(takes_context=True, max_attempts=50, backoff=constant(0))
def work(context: Any, seconds: float, how: str = "") -> None:
    record("start", context)
    if how == "grow":
        with context.batch:
            enqueue_many([call(work, seconds) for _ in range(2)])
    time.sleep(seconds)
    record("end", context)
    if how == "fail":
        raise Fail("in the task")


@task(takes_context=True, max_attempts=50, backoff=constant(0))
async def awork(context: Any, seconds: float) -> None:
    record("start", context)
    record("end", context)


def make(seconds: float, number: int) -> list[int]:
    """Enqueue a batch with another one in it; return the ids of both."""
    callbacks = {f"on_{name}": call(told, name) for name in ("success", "failure", "finish")}
    last = call(work, seconds, "fail") if number % 3 == 0 else call(work, seconds)
    with Batch(f"outer {number}", **callbacks) as outer:  # type: ignore[arg-type]
        enqueue_many([call(work, seconds), call(work, seconds, "grow"), call(awork, seconds)])
        with Batch(f"inner {number}", **callbacks) as inner:  # type: ignore[arg-type]
            enqueue_many([call(work, seconds), last])
    return [outer.id, inner.id]
