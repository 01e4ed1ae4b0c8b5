"""Tasks that need nothing but themselves."""

from __future__ import annotations

from steady_queue_core import task


@task
def noop() -> None:
    """Do nothing."""


@task
def add(a: int, b: int) -> int:
    return a + b


@task
def fail(message: str) -> None:
    raise ValueError(message)
