"""The tasks of the load: each appends its start and its end to the effect log."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

from steady_queue_core import Unique, limits_concurrency, recurring, task

from .effects import append

LIMIT = 2
KEPT = timedelta(hours=1)


def _run(context: Any, kind: str, number: int, seconds: float) -> None:
    job = context.task_result.id
    append(kind, number, job, "start")
    time.sleep(seconds)
    append(kind, number, job, "end")


@task(takes_context=True)
def plain(context: Any, number: int) -> int:
    _run(context, "plain", number, 0.01)
    return os.getpid()


@task(takes_context=True, unique=Unique(keep=KEPT))
def unique(context: Any, number: int) -> int:
    _run(context, "unique", number, 0.01)
    return os.getpid()


@limits_concurrency(key="limited", to=LIMIT, duration=timedelta(minutes=5))
@task(takes_context=True)
def limited(context: Any, number: int) -> int:
    _run(context, "limited", number, 0.05)
    return os.getpid()


@recurring(schedule=timedelta(seconds=1), key="slot")
@task(takes_context=True)
def slot(context: Any) -> int:
    _run(context, "slot", 0, 0.0)
    return os.getpid()
