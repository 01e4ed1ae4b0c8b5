"""The effect log: a record of the tasks' work in a file outside of the queue and its database.

One line for each event, appended in one write: ``start job_id token pid monotonic_ns``, then
``end`` with the same fields; a task may note other events between them. The file is named by
``STEADY_QUEUE_EFFECT_LOG``.
"""

from __future__ import annotations

import os
import time
from typing import Any

_descriptors: dict[int, int] = {}


def record(event: str, context: Any) -> None:
    """Append a line about the attempt whose task context this is."""
    pid = os.getpid()
    descriptor = _descriptors.get(pid)
    if descriptor is None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = _descriptors[pid] = os.open(
            os.environ["STEADY_QUEUE_EFFECT_LOG"], flags, 0o600
        )
    line = f"{event} {context.task_result.id} {context.token} {pid} {time.monotonic_ns()}\n"
    os.write(descriptor, line.encode())
