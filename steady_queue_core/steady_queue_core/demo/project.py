"""The throw-away project: what ``startproject`` writes, and the few lines that the README adds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import django

SETTINGS = """

INSTALLED_APPS += [{apps}]
TASKS = {{"default": {{"BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": []}}}}
"""

#: How often it is tried to delete the folder, and seconds between two tries.
REMOVALS, PAUSE = 20, 0.1


class Project:
    """A project in a folder of its own, which only this user may enter."""

    #: The app with the tasks.
    app = "demo"
    #: What is added to the settings, and the module of those that are in force.
    settings = SETTINGS
    settings_module = "mysite.settings"

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

    @property
    def tasks(self) -> str:
        """The text of the module with the tasks."""
        return self._text_of("tasks.py")

    def make(self) -> None:
        """Write the files."""
        subprocess.run(
            [sys.executable, "-m", "django", "startproject", "mysite", "."],
            cwd=self.folder,
            check=True,
            env=_without_project(os.environ),
        )
        backport = ["django_tasks"] if django.VERSION < (6, 0) else []
        apps = ["steady_queue_core", self.app, *backport]
        with (self.folder / "mysite" / "settings.py").open("a") as settings:
            settings.write(self.settings.format(apps=", ".join(f'"{app}"' for app in apps)))
        app = self.folder / self.app
        app.mkdir()
        (app / "__init__.py").touch()
        (app / "tasks.py").write_text(self.tasks)

    def enter(self) -> None:
        """Make this process one of the project, as a web process would be, and migrate."""
        os.environ["DJANGO_SETTINGS_MODULE"] = self.settings_module
        sys.path.insert(0, str(self.folder))
        django.setup()
        from django.core.management import call_command
        from django.db import connections

        from ..dialects import dialect_for

        dialect_for("default")
        call_command("migrate", verbosity=0)
        connections.close_all()

    def last_written(self) -> list[str]:
        """Return the last lines that the supervisor and its processes have written."""
        return self.supervisor_log.read_text(errors="replace").splitlines()[-40:]

    def remove(self) -> None:
        """Delete the folder."""
        for _ in range(REMOVALS):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(PAUSE)  # A request that is under way may have made a file meanwhile.

    def end(self, *, keep: bool) -> str:
        """Delete the folder, or keep it; return what there is to say about it, if anything."""
        if keep:
            return f"The project is kept in {self.folder}"
        self.remove()
        return f"Could not delete {self.folder}" if self.folder.exists() else ""

    def _text_of(self, *names: str) -> str:
        return files(__package__).joinpath(*names).read_text(encoding="utf-8")


def _without_project(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the project that it may be of, which would be set up, or
    might have taken the name. Django is found where this process has it."""
    of_project = {"DJANGO_SETTINGS_MODULE", "PYTHONPATH"}
    rest = {name: value for name, value in environment.items() if name not in of_project}
    return rest | {"PYTHONPATH": str(Path(django.__file__).parents[1])}
