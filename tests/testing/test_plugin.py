"""The plugin of pytest harms no project, whether it has Django or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WITHOUT_DJANGO = """
import sys

def test_nothing_of_django_was_imported(pytestconfig):
    assert pytestconfig.pluginmanager.has_plugin("steady_queue")
    assert not [name for name in sys.modules if name.partition(".")[0].startswith("django")]
"""

LATE_SETTINGS = """
import django
from django.conf import settings

def pytest_configure():
    assert not settings.configured
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["steady_queue_core"],
        TASKS={"default": {
            "BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": [],
        }},
    )
    django.setup()
"""

WITH_DJANGO = """
import pytest
from steady_queue_core import task

@task
def double(number):
    return 2 * number

@pytest.mark.steady_queue("dummy")
def test_the_mark_and_the_fixture_work(steady_queue):
    double.enqueue(2)
    steady_queue.assert_enqueued(double, args=[2])
    [result] = steady_queue.run()
    assert result.return_value == 4
"""


def pytest_says(folder: Path, *arguments: str) -> str:
    private = ("DJANGO_", "STEADY_QUEUE_", "PYTEST_")
    environ = {name: text for name, text in os.environ.items() if not name.startswith(private)}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-W", "error", *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_it_imports_nothing_of_django_until_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(WITHOUT_DJANGO)
    assert "1 passed" in pytest_says(tmp_path, "-p", "no:django")


def test_settings_may_be_made_by_a_conftest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(LATE_SETTINGS)
    (tmp_path / "test_it.py").write_text(WITH_DJANGO)
    assert "1 passed" in pytest_says(tmp_path, "-p", "no:django")


def test_it_is_told_what_there_is(tmp_path: Path) -> None:
    assert "@pytest.mark.steady_queue(kind, **options): " in pytest_says(tmp_path, "--markers")
