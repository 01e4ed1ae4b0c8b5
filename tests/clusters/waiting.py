"""Waiting, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], limit: float, what: str) -> None:
    """Raise ``TimeoutError`` if a condition has not come true in ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit:.0f} s: {what}")
        time.sleep(0.1)
