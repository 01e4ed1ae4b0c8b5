"""Tasks with keys that would end a process: of callbacks, and of schedules."""

from __future__ import annotations

import os
import signal
import time
from asyncio import CancelledError
from typing import Any

from steady_queue_core import limits_concurrency, task

ERRORS = (
    SystemExit, KeyboardInterrupt, CancelledError, GeneratorExit, MemoryError, RecursionError,
)  # fmt: skip


def rude_key(result_id: str = "0", *args: Any) -> str:
    """Raise each of the errors in its turn."""
    raise ERRORS[int(result_id) % len(ERRORS)]


@limits_concurrency(key=rude_key)
@task
def told(*args: Any) -> None:
    """Do nothing."""


@task(on_success=told, on_failure=told)
def work() -> None:
    """Do nothing."""


@task(on_success=told, on_failure=told)
def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
