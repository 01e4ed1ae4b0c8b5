"""Tasks that need nothing but themselves."""

from __future__ import annotations

from typing import Any

from steady_queue_core import task


@task
def noop() -> None:
    """Do nothing."""


@task
def add(a: int, b: int) -> int:
    return a + b


@task(takes_context=True)
def sign_up(context: Any, name: str, password: str, *pins: str, **details: Any) -> None:
    """Take what nobody is to see."""


@task
def make_token(length: int) -> str:
    return "x" * length


@task
def fail(message: str) -> None:
    raise ValueError(message)
