"""A project with nothing but the queue, in the database that the usual variables of libpq name."""

from __future__ import annotations

import os

import django

SECRET_KEY = "for tests only"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "steady_queue_core"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PGHOST", "127.0.0.1"),
        "PORT": os.environ.get("PGPORT", "5432"),
        "NAME": os.environ.get("PGDATABASE", "postgres"),
        "USER": os.environ.get("PGUSER", "postgres"),
        "PASSWORD": os.environ.get("PGPASSWORD", ""),
    }
}
# Where both are installed, this one is meant.
STEADY_QUEUE = {"dialects": {"default": "plain_postgres"}}
