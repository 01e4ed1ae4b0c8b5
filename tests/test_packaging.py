"""What a user has after ``pip install`` in an empty environment and ``startproject``.

Nothing here may see the environment of the suite: each test makes a virtual environment, installs
the distributions from the workspace, and talks to the project through its ``manage.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .newcomer import NewProject

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def project(tmp_path: Path) -> NewProject:
    return NewProject(tmp_path)


def test_core_and_sqlite_in_an_empty_environment_are_a_working_queue(
    project: NewProject, workspace: Path
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


def test_the_admin_has_its_pages_at_once(project: NewProject, workspace: Path) -> None:
    project.install(workspace / "steady_queue_core", workspace / "steady_queue_sqlite")
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
    """)
    assert told == ["200 True False", "200 True True", "200 True True", "200 True False"]


def test_core_without_a_dialect_is_a_check_error_that_names_the_package_to_install(
    project: NewProject, workspace: Path
) -> None:
    project.install(workspace / "steady_queue_core")
    project.start()

    result = project.manage("check", "--database", "default", check=False)

    assert result.returncode == 1
    assert "steady_queue.E001" in result.stderr
    assert "pip install steady-queue-sqlite" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_console_script_is_installed(project: NewProject, workspace: Path) -> None:
    project.install(workspace / "steady_queue_core", workspace / "steady_queue_sqlite")

    result = project.run(
        str(project.environment / "bin" / "steady-queue"), "--help", cwd=project.environment
    )

    assert "demo" in result.stdout
