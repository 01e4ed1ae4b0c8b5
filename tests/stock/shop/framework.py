"""Where the project's Django has its task framework."""

from __future__ import annotations

import django

if django.VERSION < (6, 0):
    from django_tasks import TaskResultStatus, task, task_backends

    BACKENDS = "django_tasks.backends"
else:
    from django.tasks import TaskResultStatus, task, task_backends

    BACKENDS = "django.tasks.backends"

__all__ = ["BACKENDS", "TaskResultStatus", "task", "task_backends"]
