"""Settings of the test suite: a stock SQLite database in a file, which other processes can open.

Servers whose addresses the environment names have aliases of their own, and so have those that are
started for the tests (``tests.servers``). What a test does not name it does not touch.

``STEADY_QUEUE_TEST_DB`` names the file. It is set here for the processes that a test starts; left
unset, each run of the suite has a temporary file of its own.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import django

from .servers.kinds import given_databases

os.environ.setdefault(
    "STEADY_QUEUE_TEST_DB",
    str(Path(tempfile.gettempdir()) / f"steady-queue-tests-{os.getpid()}.sqlite3"),
)

SECRET_KEY = "for tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "steady_queue_core",
    "tests.app",
]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["STEADY_QUEUE_TEST_DB"],
        # Django would put the test database into memory, where no other process sees it.
        "TEST": {"NAME": os.environ["STEADY_QUEUE_TEST_DB"]},
    },
    **given_databases(),
}

TASKS = {
    "default": {
        "BACKEND": "steady_queue_core.backend.SteadyQueueBackend",
        "QUEUES": [],
    }
}
