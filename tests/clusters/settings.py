"""A project whose database is a cluster; the environment says where.

``STEADY_QUEUE_CLUSTER`` is the entry of ``DATABASES`` as JSON, ``STEADY_QUEUE_EFFECTS`` the file
that the tasks append to.
"""

from __future__ import annotations

import json
import os

import django

SECRET_KEY = "for tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "steady_queue_core"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")
DATABASES = {"default": json.loads(os.environ["STEADY_QUEUE_CLUSTER"])}
TASKS = {
    "default": {"BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": []},
}
STEADY_QUEUE = {
    "workers": [{"processes": 1, "threads": 2, "polling_interval": 0.1}],
    "dispatchers": [{"polling_interval": 0.5}],
    "task_modules": ["tests.clusters.tasks"],
    "shutdown_timeout": 30,
}
