"""Tasks of Steady Queue itself. Workers know them although no project declares them."""

from __future__ import annotations

from typing import cast

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from ..compat import Task
from ..own_tasks import OWN_TASKS


def own_task_at(path: str) -> Task | None:
    """Return the task of Steady Queue at ``path``; ``None`` if there is none, or if what it needs
    is not installed in this process."""
    if path not in OWN_TASKS:
        return None
    try:
        return cast(Task, import_string(path))
    except (ImportError, RuntimeError, ImproperlyConfigured):
        return None  # The admin is not installed: its jobs are left to other workers.
