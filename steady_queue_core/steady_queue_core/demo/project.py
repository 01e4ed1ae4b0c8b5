"""The throw-away project: what ``startproject`` writes, and the few lines that the README adds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import django

SETTINGS = """

INSTALLED_APPS += [{apps}]
TASKS = {{"default": {{"BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": []}}}}
"""


class Project:
    """A project in a folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="steady-queue-demo-"))

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor and its processes write to their standard error."""
        return self.folder / "supervisor.log"

    @property
    def effects(self) -> Path:
        """What the tasks write."""
        return self.folder / "effects.log"

    def make(self) -> None:
        """Write the files."""
        subprocess.run(
            [sys.executable, "-m", "django", "startproject", "mysite", "."],
            cwd=self.folder,
            check=True,
        )
        apps = ["steady_queue_core", "demo", *(["django_tasks"] if django.VERSION < (6, 0) else [])]
        with (self.folder / "mysite" / "settings.py").open("a") as settings:
            settings.write(SETTINGS.format(apps=", ".join(f'"{app}"' for app in apps)))
        app = self.folder / "demo"
        app.mkdir()
        (app / "__init__.py").touch()
        (app / "tasks.py").write_text((files(__package__) / "tasks.py").read_text())

    def enter(self) -> None:
        """Make this process one of the project, as a web process would be, and migrate."""
        os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
        sys.path.insert(0, str(self.folder))
        django.setup()
        from django.core.management import call_command
        from django.db import connections

        from ..dialects import dialect_for

        dialect_for("default")
        call_command("migrate", verbosity=0)
        connections.close_all()
