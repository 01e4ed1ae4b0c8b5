"""Titles of processes, as ``ps`` and ``top`` show them, where setproctitle is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from ...printable import printable


@cache
def _setter() -> Callable[[str], object] | None:
    try:
        setter: Callable[[str], object] = import_module("setproctitle").setproctitle
    except ImportError:
        return None
    return setter


def set_title(kind: str, activity: str) -> None:
    """Have the process called by its kind, and by what it does just now."""
    if (setter := _setter()) is not None:
        setter(
            printable(f"steady-queue {kind}: {activity}" if activity else f"steady-queue {kind}")
        )
