"""Waiting for what has to come true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T], seconds: float, what: str = "") -> T:
    """Return the first true value of ``condition``; fail when the time is over."""
    deadline = time.monotonic() + seconds
    pause = 0.005
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what or condition} did not come true in {seconds:g} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    return value
