"""``--reload`` and ``--log-format``."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from .conftest import MakeProject
from .harness import Project, Supervisor
from .scenarios import queue
from .waiting import wait_for

TASKS = """
from pathlib import Path

from steady_queue_core import task

@task(takes_context=True)
def tell(context):
    with open(Path(__file__).with_name("told"), "a") as file:
        file.write("{word} ")
"""


def write(project: Project, word: str, code: str = TASKS) -> None:
    path = project.folder / "changing" / "tasks.py"
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    path.write_text(code.replace("{word}", word))
    # The reloader compares times, and a file system may keep whole seconds.
    earlier = write.__dict__["at"] = write.__dict__.get("at", path.stat().st_mtime) + 10
    os.utime(path, (earlier, earlier))


def told(project: Project) -> list[str]:
    path = project.folder / "changing" / "told"
    return path.read_text().split() if path.exists() else []


ENQUEUE = "from changing.tasks import tell; tell.enqueue()"


def enqueue(project: Project) -> None:
    done = project.manage("shell", "-c", ENQUEUE)
    assert done.returncode == 0, done.stderr


def wait_said(supervisor: Supervisor, what: str) -> None:
    wait_for(lambda: what in supervisor.output(), 30, what)


@pytest.mark.fresh
@pytest.mark.thorough
def test_changed_code_is_taken_when_it_passes_the_checks(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1), extra='INSTALLED_APPS.append("changing")')
    write(project, "old")
    supervisor = project.start("--reload")
    wait_said(supervisor, "Stop with Ctrl-C")
    enqueue(project)
    wait_for(lambda: told(project) == ["old"], 20, "the old code")
    [slow] = project.enqueue("work", [3.0])
    project.wait_started(slow)

    write(project, "broken", "import nowhere")
    wait_said(supervisor, "No module named 'nowhere'")
    write(project, "new")
    wait_said(supervisor, "starting anew")
    wait_for(lambda: supervisor.output().count("Stop with Ctrl-C") == 2, 30, "the next one")
    enqueue(project)
    wait_for(lambda: told(project) == ["old", "new"], 20, "the new code")
    assert project.state_of(slow) == "finished"
    assert len(project.attempts_at(slow)) == 1
    assert supervisor.stop(signal.SIGINT) == 0
    assert project.count("processes") == 0


@pytest.mark.thorough
@pytest.mark.fresh
def test_code_that_breaks_between_the_checks_and_the_start_is_waited_for(
    make_project: MakeProject,
) -> None:
    project = make_project(
        queue(processes=1, shutdown_timeout=30), extra='INSTALLED_APPS.append("changing")'
    )
    write(project, "old")
    supervisor = project.start("--reload")
    wait_said(supervisor, "Stop with Ctrl-C")
    [slow] = project.enqueue("work", [15.0])
    project.wait_started(slow)
    write(project, "new")
    wait_said(supervisor, "starting anew")
    assert project.state_of(slow) == "claimed", "the machine is too slow to see this"
    write(project, "broken", "import nowhere")
    wait_for(lambda: "waiting for a change" in supervisor.errors(), 30, "the end of the start")
    assert "No module named 'nowhere'" in supervisor.errors()
    assert supervisor.process.poll() is None
    write(project, "still broken", "task = \\n")
    wait_for(lambda: supervisor.errors().count("waiting for a change") == 2, 30, "another one")
    write(project, "mended")
    wait_for(lambda: supervisor.output().count("Stop with Ctrl-C") == 2, 30, "the next one")
    enqueue(project)
    wait_for(lambda: told(project) == ["mended"], 20, "the mended code")
    write(project, "newest")
    wait_for(lambda: supervisor.output().count("Stop with Ctrl-C") == 3, 30, "the newest one")
    assert supervisor.stop(signal.SIGINT) == 0
    assert len(project.attempts_at(slow)) == 1
    assert project.count("processes") == 0


def test_json_goes_to_the_standard_error_from_every_process(make_project: MakeProject) -> None:
    extra = 'SILENCED_SYSTEM_CHECKS = ["steady_queue.W009"]'
    project = make_project(queue(processes=1), extra=extra)
    [job] = project.enqueue("work")
    project.enqueue("flaky", [1])
    supervisor = project.start("--drain", "--log-format", "json")
    assert supervisor.wait_exit() == 0
    lines = [json.loads(line) for line in supervisor.errors().splitlines()]
    [finished] = [each for each in lines if each.get("event") == "task.finished"][:1]
    assert finished["task_id"] == str(job)
    assert finished["process_name"].startswith("worker-")
    assert finished["pid"] == project.attempts_at(job)[0].pid
    events = {each.get("event") for each in lines}
    assert {"process.started", "process.ended", "task.retried", "supervisor.stopping"} <= events
    ends = [each for each in lines if each.get("event") == "process.ended"]
    assert {each["process_name"].split("-")[0] for each in ends} == {"supervisor"}
    assert Path(project.folder / "supervisor-0.out").read_text().startswith("Steady Queue")
