"""The options of ``@task`` and ``using()``, as type checkers know them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ..features import declared
from ..retries import Backoff


class TaskOptions(declared.TaskOptions, total=False):
    """The options of ``@task``; see ``SteadyQueueTask``."""

    priority: int
    queue_name: str
    backend: str
    max_attempts: int | None
    backoff: Backoff | None
    enqueue_on_commit: bool | None
    metadata: dict[str, Any] | None


class UsingOptions(declared.CallOptions, total=False):
    """The options of ``using()``."""

    priority: int | None
    queue_name: str | None
    run_after: datetime | timedelta | None
    backend: str | None
    enqueue_on_commit: bool | None
    metadata: dict[str, Any] | None


#: The names of the options of ``using()``.
USING = frozenset(UsingOptions.__annotations__)
