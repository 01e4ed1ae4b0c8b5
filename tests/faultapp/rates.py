"""Tasks whose starts are limited in their rate."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from steady_queue_core import limits_concurrency, limits_rate, task
from steady_queue_core.retries import constant

from .effects import record


@limits_rate(to=100, per=timedelta(seconds=1), burst=20)
@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def work(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return int(context.token)
