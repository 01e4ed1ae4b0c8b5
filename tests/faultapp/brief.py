"""A task whose permits may be kept for a shorter time than a process is silent."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from steady_queue_core import limits_concurrency, task
from steady_queue_core.retries import constant

from .effects import record


@limits_concurrency(key="brief", duration=timedelta(seconds=1))
@task(takes_context=True, max_attempts=10, backoff=constant(0))
def brief(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return int(context.token)
