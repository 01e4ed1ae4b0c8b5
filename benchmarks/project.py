"""The throw-away Django project that a competitor runs in."""

from __future__ import annotations

import pprint
import shutil
from pathlib import Path

from benchmarks.adapters import Adapter
from benchmarks.databases import Database
from benchmarks.options import Options

MANAGE = """\
from __future__ import annotations

import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
"""

SETTINGS = """\
from __future__ import annotations

import os

SECRET_KEY = "benchmark"
DEBUG = False
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "jobs"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {{"default": {database}}}
if port := os.environ.get("BENCHMARK_PORT"):  # A way to the server on which somebody counts.
    DATABASES["default"]["PORT"] = int(port)
if os.environ.get("BENCHMARK_CONNECTIONS") == "stock":
    DATABASES["default"].pop("CONN_MAX_AGE", None)
QUEUES = os.environ.get("BENCHMARK_QUEUES", "*").split(",")
PROCESSES, THREADS = {processes}, int(os.environ.get("BENCHMARK_THREADS", {threads}))

"""

SITECUSTOMIZE = """\
from __future__ import annotations

import os

if os.environ.get("BENCHMARK_TRACE"):
    from benchmarks import trace

    trace.install()
"""


def write(directory: Path, adapter: Adapter, database: Database, options: Options) -> None:
    """Write the project of one competitor into an empty directory."""
    settings = SETTINGS.format(
        database=pprint.pformat(database.settings()),
        processes=options.processes,
        threads=options.threads,
    )
    files = {
        "manage.py": MANAGE,
        "settings.py": settings + adapter.settings(database, options),
        "sitecustomize.py": SITECUSTOMIZE,
        "jobs/__init__.py": "",
        **adapter.files(options),
    }
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # The project has a copy of the harness: the root of the repository is not importable there, so
    # that what runs is what was installed.
    shutil.copytree(
        Path(__file__).parent,
        directory / "benchmarks",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
