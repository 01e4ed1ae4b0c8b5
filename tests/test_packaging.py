"""What a user has after ``pip install`` in an empty environment and ``startproject``.

Nothing here may see the environment of the suite: each test makes a virtual environment, installs
the distributions from the workspace, and talks to the project through its ``manage.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import django
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

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


class Project:
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

    def install(self, *distributions: Path) -> None:
        """Install from the workspace, with the Django that the suite itself runs on."""
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
        with (self.folder / "mysite" / "settings.py").open("a") as settings:
            settings.write(SETTINGS.format(apps=", ".join(map(repr, apps))))
        jobs = self.folder / "jobs"
        jobs.mkdir()
        (jobs / "__init__.py").touch()
        tasks = "django_tasks" if backport else "django.tasks"
        (jobs / "tasks.py").write_text(TASKS.format(tasks=tasks))

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.python), "manage.py", *arguments, cwd=self.folder, check=check)

    def shell(self, code: str) -> list[str]:
        """Run ``code`` in the project and return the lines that it prints."""
        output = self.manage("shell", "--no-imports", "-c", textwrap.dedent(code)).stdout
        return output.splitlines()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_core_and_sqlite_in_an_empty_environment_are_a_working_queue(
    project: Project, workspace: Path
) -> None:
    project.install(workspace / "steady_queue_core", workspace / "steady_queue_sqlite")
    project.start()
    project.manage("check", "--database", "default")
    project.manage("migrate")
    project.manage("makemigrations", "--check", "--dry-run")
    ids = project.shell("""
        from jobs.tasks import our_add, stock_add
        print(stock_add.enqueue(2, 3).id)
        print(our_add.enqueue(20, b=30).id)
    """)

    project.manage("steady_queue", "--drain")

    assert project.shell(f"""
        from jobs.tasks import our_add, stock_add
        for task, id in zip([stock_add, our_add], {ids!r}):
            result = task.get_result(id)
            print(result.status.name, result.return_value)
    """) == ["SUCCESSFUL 5", "SUCCESSFUL 50"]


def test_core_without_a_dialect_is_a_check_error_that_names_the_package_to_install(
    project: Project, workspace: Path
) -> None:
    project.install(workspace / "steady_queue_core")
    project.start()

    result = project.manage("check", "--database", "default", check=False)

    assert result.returncode == 1
    assert "steady_queue.E001" in result.stderr
    assert "pip install steady-queue-sqlite" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_console_script_is_installed(project: Project, workspace: Path) -> None:
    project.install(workspace / "steady_queue_core", workspace / "steady_queue_sqlite")

    result = project.run(
        str(project.environment / "bin" / "steady-queue"), "--help", cwd=project.environment
    )

    assert "demo" in result.stdout
