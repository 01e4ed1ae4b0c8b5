"""Tasks whose jobs are unique."""

from __future__ import annotations

import time
from typing import Any

from steady_queue_core import Unique, limits_concurrency, task
from steady_queue_core.retries import constant

from .effects import record


def first(key: str, *args: object) -> str:
    return key


@task(takes_context=True, unique=Unique(key=first), max_attempts=50, backoff=constant(0))
def work(context: Any, key: str, seconds: float = 0.0) -> None:
    """Work until an attempt ends by itself."""
    record("start", context)
    time.sleep(seconds)
    record("end", context)


@task(takes_context=True, unique=Unique(key=first))
def work_once(context: Any, key: str, seconds: float = 0.0) -> None:
    """Work, or fail with the process."""
    work.func(context, key, seconds)


@task(
    takes_context=True, unique=Unique(key=first, until="started"), max_attempts=50,
    backoff=constant(0),
)  # fmt: skip
def in_line(context: Any, key: str, seconds: float = 0.0) -> None:
    """Work, without the key."""
    work.func(context, key, seconds)


@limits_concurrency(key="one")
@task(takes_context=True, unique=Unique(key=first, until="started"))
def in_line_alone(context: Any, key: str, seconds: float = 0.0) -> None:
    """Work, without the key, one after the other."""
    work.func(context, key, seconds)
