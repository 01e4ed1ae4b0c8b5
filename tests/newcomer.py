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


class Environment:
    """A virtual environment that holds nothing but what is installed into it."""

    def __init__(self, folder: Path, wheels: Wheels) -> None:
        self.folder, self._wheels = folder, wheels
        self.python = folder / "bin" / "python"
        # The pip of the suite installs: to unpack another one takes longer than all the rest.
        run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder.parent)

    def install(self, *distributions: Path | str) -> None:
        """Install folders or names, with the Django that the suite itself runs on."""
        constraints = self.folder / "constraints.txt"
        constraints.write_text(f"Django=={django.__version__}\n")
        wanted = [
            self._wheels.of(each) if isinstance(each, Path) else each for each in distributions
        ]
        run(
            sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet",
            "--disable-pip-version-check", "--no-compile", "-c", str(constraints), *wanted,
            cwd=self.folder,
        )  # fmt: skip


class Wheels:
    """The wheels of the workspace's distributions, each built when it is first wanted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, distribution: Path) -> str:
        """Return the path of a distribution's wheel."""
        folder = self._folder / distribution.name
        if not folder.exists():
            run(
                sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
                "--no-deps", "--no-build-isolation", "-w", str(folder), str(distribution),
                cwd=distribution,
            )  # fmt: skip
        [wheel] = folder.glob("*.whl")
        return str(wheel)


class NewProject:
    """A project made by ``startproject``, with the packages of an environment."""

    def __init__(self, folder: Path, environment: Environment) -> None:
        self.folder = folder
        self.environment = environment

    def start(self) -> None:
        """Run ``startproject``, add what our README says and one module of tasks."""
        backport = django.VERSION < (6, 0)
        apps = ["steady_queue_core", "jobs", *(["django_tasks"] if backport else [])]
        self.folder.mkdir(parents=True)
        self.run("-m", "django", "startproject", "mysite", ".")
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
        return self.run("manage.py", *arguments, check=check)

    def shell(self, code: str) -> list[str]:
        """Run ``code`` in the project and return the lines that it prints."""
        output = self.manage("shell", "--no-imports", "-c", textwrap.dedent(code)).stdout
        return output.splitlines()

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run(str(self.environment.python), *arguments, cwd=self.folder, check=check)


def run(*command: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command that sees nothing of the suite's own settings."""
    private = ("DJANGO_", "PYTHON", "PYTEST_", "STEADY_QUEUE_", "VIRTUAL_ENV")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(private)}
    result = subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=180, check=False
    )
    if check:
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result
