"""Settings of the test suite: a stock SQLite database in a file, which other processes can open.

Servers whose addresses the environment names have aliases of their own, and so have those that are
started for the tests (``tests.servers``). What a test does not name it does not touch.

``STEADY_QUEUE_TEST_DB`` names the file. It is set here for the processes that a test starts; left
unset, each run of the suite has a temporary file of its own. Each worker of pytest-xdist has one
beside it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import django

from .servers.kinds import given_databases


def database_file(named: str | None) -> Path:
    """Return the file of this process: that of its worker of pytest-xdist, if it has one."""
    unnamed = Path(tempfile.gettempdir()) / f"steady-queue-tests-{os.getpid()}.sqlite3"
    file = Path(named) if named else unnamed
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    # A process that a worker has started is given the worker's file already.
    if worker is None or file.stem.endswith(f"-{worker}"):
        return file
    return file.with_stem(f"{file.stem}-{worker}")


os.environ["STEADY_QUEUE_TEST_DB"] = str(database_file(os.environ.get("STEADY_QUEUE_TEST_DB")))

SECRET_KEY = "for tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "steady_queue_core",
    "tests.app",
]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

# What the pages of the admin need.
ROOT_URLCONF = "tests.admin.urls"
STATIC_URL = "static/"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

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
