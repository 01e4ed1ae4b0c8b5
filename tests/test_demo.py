"""``steady-queue demo``: what it shows, that it judges by what happened, and what it leaves."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import pytest

from . import documents
from .demos import processes_in, projects, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

#: Makes three of the tasks behave otherwise than planned.
SABOTAGE = """
from steady_queue_core.demo.project import Project

make = Project.make

def make_and_change(self):
    make(self)
    tasks = self.folder / "demo" / "tasks.py"
    text = tasks.read_text()
    for old, new in [
        ("context.attempt < 3", "context.attempt < 9"),
        ("raise ValueError(\\"this one always fails\\")", "return None"),
        ("await asyncio.sleep(1)", "time.sleep(0.1)"),
    ]:
        assert old in text
        text = text.replace(old, new)
    tasks.write_text(text)

Project.make = make_and_change
"""


def shape(line: str) -> str:
    """Return ``line`` without what differs from run to run and from machine to machine."""
    return re.sub(r" +", " ", re.sub(r"[\d.]*\d", "0", line))


def assert_shown_in_the_readme(output: str) -> None:
    """The README shows lines of this output, and all of the banner and of the verdict."""
    [shown] = documents.blocks(documents.page("README.md"), "text")
    printed = {shape(line) for line in output.splitlines()}
    in_readme = {shape(line) for line in shown.splitlines()}
    assert in_readme - printed == {" ..."}
    assert all(re.match(r" \d:\d:\d ", line) for line in printed - in_readme)


@pytest.fixture
def _leaves_no_process(tmp_path: Path):
    yield
    deadline = time.monotonic() + 10
    while (left := processes_in(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == {}


@pytest.mark.usefixtures("_leaves_no_process")
def test_all_goes_as_planned_and_nothing_is_left(tmp_path: Path) -> None:
    output, errors = start(tmp_path).communicate(timeout=60)

    assert "  OK in " in output, output + errors
    assert errors == ""
    assert "Steady Queue" in output.splitlines()[0]
    for word in ("delayed", "done", "retry", "failed", "progress"):
        assert re.search(rf"^  \d\d:\d\d:\d\d  {word} +demo\.tasks\.\w+ #\d+ ", output, re.M), word
    assert output.count("\n  ok     ") == 12
    assert "WRONG" not in output
    assert projects(tmp_path) == []
    assert_shown_in_the_readme(output)


@pytest.mark.usefixtures("_leaves_no_process")
def test_the_project_of_the_terminal_does_not_matter(tmp_path: Path) -> None:
    other = tmp_path / "other" / "mysite"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    (other / "settings.py").write_text("INSTALLED_APPS = ['not.there']")
    of_other = {"DJANGO_SETTINGS_MODULE": "mysite.settings", "PYTHONPATH": str(other.parent)}

    output, errors = start(tmp_path, environment=of_other).communicate(timeout=60)

    assert "  OK in " in output, output + errors
    assert errors == ""


@pytest.mark.usefixtures("_leaves_no_process")
def test_what_differs_from_the_plan_is_named_and_makes_it_fail(tmp_path: Path) -> None:
    demo = start(tmp_path, "--keep", before=SABOTAGE)

    output, _ = demo.communicate(timeout=60)

    assert demo.returncode == 1
    assert re.search(r"WRONG  flaky #\d+ is FAILED, not SUCCESSFUL", output)
    assert re.search(r"WRONG  broken #\d+ is SUCCESSFUL, not FAILED", output)
    assert re.search(r"WRONG  only 1 of 10 coroutines ran at once", output)
    assert "\n  ok     the supervisor stopped at TERM" in output
    assert "FAILED in" in output
    [kept] = projects(tmp_path)
    assert f"The project is kept in {kept}" in output
    assert (kept / "manage.py").exists()


@pytest.mark.usefixtures("_leaves_no_process")
@pytest.mark.parametrize(
    "signum", [pytest.param(signal.SIGINT, marks=pytest.mark.thorough), signal.SIGTERM]
)
def test_interrupted_it_stops_its_supervisor_and_removes_the_project(
    signum: signal.Signals, tmp_path: Path
) -> None:
    demo = start(tmp_path)
    assert demo.stdout is not None
    while "  done " not in (line := demo.stdout.readline()):
        assert line, "the demo ended early"

    demo.send_signal(signum)
    _, errors = demo.communicate(timeout=30)

    assert demo.returncode == 130
    assert "nothing is checked" in errors
    assert "Traceback" not in errors
    assert projects(tmp_path) == []


@pytest.mark.thorough
@pytest.mark.usefixtures("_leaves_no_process")
def test_killed_it_takes_its_supervisor_along(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells a process that its parent has died")
    demo = start(tmp_path)
    assert demo.stdout is not None
    while "  done " not in (line := demo.stdout.readline()):
        assert line, "the demo ended early"

    demo.kill()
    demo.communicate(timeout=30)


def test_without_a_dialect_it_names_the_package_to_install(tmp_path: Path) -> None:
    hide = "import importlib.metadata\nimportlib.metadata.entry_points = lambda **kwargs: []"
    demo = start(tmp_path, before=hide)

    output, errors = demo.communicate(timeout=60)

    assert demo.returncode == 1
    assert "pip install steady-queue-sqlite" in errors
    assert "Traceback" not in errors
    assert output == ""
    assert projects(tmp_path) == []
