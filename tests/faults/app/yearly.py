"""A recurring task that is not due for long."""

from __future__ import annotations

from steady_queue_core import recurring

from .tasks import function

recurring(schedule="@yearly", key="yearly")(function)
