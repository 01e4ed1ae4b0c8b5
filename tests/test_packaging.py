"""What a user has after ``pip install`` in an empty environment and ``startproject``.

Nothing here may see the environment of the suite: virtual environments are made, the distributions
of the workspace installed there, and each test talks to a project through its ``manage.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .demos import serve
from .newcomer import Environment, NewProject, Wheels, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def complete(
    tmp_path_factory: pytest.TempPathFactory, wheels: Wheels, workspace: Path
) -> Environment:
    """The core and the dialect of SQLite."""
    environment = Environment(tmp_path_factory.mktemp("complete"), wheels)
    environment.install(workspace / "steady_queue_core", workspace / "steady_queue_sqlite")
    return environment


def test_core_and_sqlite_in_an_empty_environment_are_a_working_queue(
    tmp_path: Path, complete: Environment
) -> None:
    project = NewProject(tmp_path / "project", complete)
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


@pytest.mark.thorough
def test_the_admin_has_its_pages_at_once(tmp_path: Path, complete: Environment) -> None:
    project = NewProject(tmp_path / "project", complete)
    project.start()
    project.manage("migrate")
    told = project.shell("""
        from django.contrib.auth.models import User
        from django.test import Client
        from jobs.tasks import our_add
        our_add.enqueue(20, b=30)
        client = Client(headers={"host": "localhost"})
        client.force_login(User.objects.create_superuser("ada"))
        for page in ("", "steady_queue/job/", "steady_queue/job/1/change/", "steady_queue/pause/"):
            response = client.get(f"/admin/{page}")
            print(response.status_code, "Steady Queue" in response.text, "our_add" in response.text)
        response = client.get("/admin/steady_queue/overview/")
        print(response.status_code, "No process of the queue is alive" in response.text)
        from django.contrib.staticfiles import finders
        for name in ("overview.css", "overview.js", "pages.css"):
            name = f"steady_queue/{name}"
            print(name in response.text, bool(finders.find(name)))
    """)
    pages, overview = told[:4], told[4:]
    assert pages == ["200 True False", "200 True True", "200 True True", "200 True False"]
    assert overview == ["200 True", *["True True"] * 3]


@pytest.mark.thorough
def test_core_without_a_dialect_does_not_start_and_names_the_package_to_install(
    tmp_path: Path, wheels: Wheels, workspace: Path
) -> None:
    environment = Environment(tmp_path / "core", wheels)
    environment.install(workspace / "steady_queue_core")
    project = NewProject(tmp_path / "project", environment)
    project.start()

    for command, returncode, found in (
        (("migrate", "auth"), 0, "steady_queue.W023"),
        (("migrate",), 1, "The tables of the queue cannot be migrated"),
        (("steady_queue",), 1, "steady_queue.E001"),
    ):
        result = project.manage(*command, check=False)

        assert result.returncode == returncode, command
        assert found in result.stderr
        assert "pip install steady-queue-sqlite" in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.thorough
def test_the_console_script_is_installed(complete: Environment) -> None:
    script = complete.folder / "bin" / "steady-queue"

    assert "demo" in run(str(script), "--help", cwd=complete.folder).stdout


@pytest.mark.thorough
def test_the_demo_serves_its_dashboard_with_all_files(
    tmp_path: Path, complete: Environment
) -> None:
    script = str(complete.folder / "bin" / "steady-queue")
    served = serve(tmp_path, program=(script,))
    browser = served.browser()

    assert "newsletter" in browser.get(served.link).text
    for name in ("steady_queue/overview.css", "steady_queue/overview.js", "admin/css/base.css"):
        assert browser.get(f"static/{name}").status == 200, name

    served.process.terminate()
    _, errors = served.process.communicate(timeout=30)
    assert (served.process.returncode, errors) == (0, "")
