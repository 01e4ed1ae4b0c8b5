"""The console script ``steady-queue``, apart from its demo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steady_queue_core import __version__

MANAGE = """
import sys
print("manage", *sys.argv[1:])
sys.exit(7)
"""


def steady_queue(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    private = ("DJANGO_", "STEADY_QUEUE_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return subprocess.run(
        [sys.executable, "-m", "steady_queue_core", *arguments],
        cwd=folder,
        env=clean | environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_and_version_need_no_settings(tmp_path: Path) -> None:
    for argument in ("--help", "-h"):
        result = steady_queue(tmp_path, argument)
        assert result.returncode == 0
        assert "steady-queue demo" in result.stdout

    assert steady_queue(tmp_path, "--version").stdout == f"steady-queue {__version__}\n"
    assert "--keep" in steady_queue(tmp_path, "demo", "--help").stdout


def test_without_arguments_the_usage_is_shown_as_an_error(tmp_path: Path) -> None:
    result = steady_queue(tmp_path)

    assert result.returncode == 2
    assert result.stderr.startswith("usage: steady-queue")
    assert result.stdout == ""


def test_without_a_project_it_says_what_is_missing(tmp_path: Path) -> None:
    result = steady_queue(tmp_path, "start")

    assert result.returncode == 2
    assert "manage.py" in result.stderr
    assert "DJANGO_SETTINGS_MODULE" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "handed_on"),
    [
        (["start"], ""),
        (["start", "--drain", "--threads", "2"], " --drain --threads 2"),
        (["--drain"], " --drain"),
        (["status", "--json"], " status --json"),
    ],
)
def test_in_the_folder_of_a_project_its_manage_py_takes_over(
    arguments: list[str], handed_on: str, tmp_path: Path
) -> None:
    (tmp_path / "manage.py").write_text(MANAGE)

    result = steady_queue(tmp_path, *arguments)

    assert result.stdout == f"manage steady_queue{handed_on}\n"
    assert result.returncode == 7


def test_elsewhere_the_settings_module_of_the_environment_is_used(
    workspace: Path, tmp_path: Path
) -> None:
    result = steady_queue(
        workspace,
        "start",
        "--backend",
        "unknown",
        DJANGO_SETTINGS_MODULE="tests.settings",
        STEADY_QUEUE_TEST_DB=str(tmp_path / "t.sqlite3"),
    )

    assert result.returncode == 1
    assert "--backend 'unknown' is no Steady Queue backend in TASKS" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--port", "8000"], "--port is for --serve"),
        (["--seconds", "5"], "--seconds is for --serve"),
        (["--serve", "--port", "65536"], "'65536' is no port: these are numbers from 1 to 65535"),
        (["--serve", "--port", "0"], "'0' is no port: these are numbers from 1 to 65535"),
        (["--serve", "--seconds", "nan"], "'nan' is no number of seconds greater than 0"),
    ],
)
def test_options_of_the_demo_that_mean_nothing_are_errors(
    arguments: list[str], complaint: str, tmp_path: Path
) -> None:
    result = steady_queue(tmp_path, "demo", *arguments)

    assert result.returncode == 2
    assert complaint in result.stderr
