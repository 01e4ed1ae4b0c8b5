"""Processes of the fork server are what interpreters of their own would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import proc
from .forked import ForkedProcess, ForkServer, environment
from .waiting import wait_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses pidfds")

TELL = """
import json, os, sys
from django.conf import settings
from django.db import connections

print(json.dumps({
    "argv": sys.argv, "folder": os.getcwd(), "name": settings.NAME, "session": os.getsid(0),
    "database": connections["default"].settings_dict["NAME"], "variable": os.environ["VARIABLE"],
    "stdin": sys.stdin.read(), "main": __name__,
}))
"""
SETTINGS = """
NAME = {name!r}
SECRET_KEY = "for tests only"
INSTALLED_APPS = ["steady_queue_core"]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {name!r}}}}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def start(server: ForkServer, folder: Path, code: str, *arguments: str) -> tuple[Any, Any]:
    """Run code in a project; return the process, and the file of its output."""
    folder.mkdir(exist_ok=True)
    (folder / "own_settings.py").write_text(SETTINGS.format(name=folder.name))
    (folder / "code_to_run.py").write_text(code)
    output = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the test)
    of_project = {"DJANGO_SETTINGS_MODULE": "own_settings", "VARIABLE": f"of {folder.name}"}
    with open(os.devnull) as stdin:
        process = server.start(
            ["code_to_run", *arguments], folder, environment(folder) | of_project,
            (stdin, output, output),
        )  # fmt: skip
    return process, output


def test_each_has_the_settings_and_the_surroundings_of_its_project(
    server: ForkServer, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        process, output = start(server, tmp_path / name, TELL, "an argument")
        assert process.wait(20) == 0
        with output:
            output.seek(0)
            told = json.loads(output.read())
        assert told["argv"] == [str(tmp_path / name / "code_to_run.py"), "an argument"]
        assert (told["folder"], told["variable"]) == (str(tmp_path / name), f"of {name}")
        assert told["name"] == told["database"] == name
        assert told["session"] == process.pid
        assert (told["stdin"], told["main"]) == ("", "__main__")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("", 0),
        ("raise SystemExit(7)", 7),
        ("raise RuntimeError", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import atexit, os; atexit.register(lambda: os._exit(3))", 3),
    ],
)
def test_its_end_is_told(server: ForkServer, tmp_path: Path, code: str, status: int) -> None:
    process, output = start(server, tmp_path, code)
    with output:
        assert process.wait(20) == process.poll() == status


def test_whoever_runs_can_be_waited_for_and_killed(server: ForkServer, tmp_path: Path) -> None:
    process, output = start(server, tmp_path, "import time; time.sleep(60)")
    with output:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.kill()
        assert process.wait(20) == -signal.SIGKILL
        process.kill()


def test_they_end_with_the_server_and_it_with_its_client(tmp_path: Path) -> None:
    server = ForkServer()
    found: list[ForkedProcess] = []
    for name in ("one", "two"):
        process, output = start(server, tmp_path / name, "import time; time.sleep(60)")
        output.close()
        found.append(process)
    server.close()
    wait_for(lambda: not any(proc.alive(each.pid) for each in found), 10, "their ends")
