"""Tasks whose outcomes a database may refuse."""

from __future__ import annotations

from typing import Any

from steady_queue_core import task


@task
def fail(text: str) -> None:
    raise ValueError(text)


@task(takes_context=True)
def tell(context: Any, text: str) -> str:
    context.progress(1, 2, text=text)
    return text
