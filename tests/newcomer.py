"""A new user's project: an environment with nothing but what was installed, and a new site."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import django

SETTINGS = """

INSTALLED_APPS += [{apps}]
TASKS = {{"default": {{"BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": []}}}}
"""

TASKS = """
from {tasks} import task
from steady_queue_core import task as our_task


@task
def stock_add(a, b):
    return a + b


@our_task
def our_add(a, b):
    return a + b
"""


class NewProject:
    """A project made by ``startproject``, in a virtual environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.environment = folder / "environment"
        self.folder = folder / "project"
        self.python = self.environment / "bin" / "python"
        self.run(sys.executable, "-m", "venv", str(self.environment), cwd=folder)

    def run(self, *command: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        private = ("DJANGO_", "PYTHON", "STEADY_QUEUE_", "VIRTUAL_ENV")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(private)}
        result = subprocess.run(
            command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=180, check=False
        )
        if check:
            assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result

    def install(self, *distributions: Path | str) -> None:
        """Install folders or names, with the Django that the suite itself runs on."""
        constraints = self.environment / "constraints.txt"
        constraints.write_text(f"Django=={django.__version__}\n")
        paths = [str(path) for path in distributions]
        self.run(
            str(self.python), "-m", "pip", "install", "--disable-pip-version-check",
            "-c", str(constraints), *paths, cwd=self.environment,
        )  # fmt: skip

    def start(self) -> None:
        """Run ``startproject``, add what our README says and one module of tasks."""
        backport = django.VERSION < (6, 0)
        apps = ["steady_queue_core", "jobs", *(["django_tasks"] if backport else [])]
        self.folder.mkdir()
        self.run(str(self.python), "-m", "django", "startproject", "mysite", ".", cwd=self.folder)
        self.configure(SETTINGS.format(apps=", ".join(map(repr, apps))))
        jobs = self.folder / "jobs"
        jobs.mkdir()
        (jobs / "__init__.py").touch()
        tasks = "django_tasks" if backport else "django.tasks"
        (jobs / "tasks.py").write_text(TASKS.format(tasks=tasks))

    def configure(self, text: str) -> None:
        """Add lines to the settings."""
        with (self.folder / "mysite" / "settings.py").open("a") as settings:
            settings.write(text)

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.python), "manage.py", *arguments, cwd=self.folder, check=check)

    def shell(self, code: str) -> list[str]:
        """Run ``code`` in the project and return the lines that it prints."""
        output = self.manage("shell", "--no-imports", "-c", textwrap.dedent(code)).stdout
        return output.splitlines()
