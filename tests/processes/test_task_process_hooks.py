"""Hooks in task processes: before their first job, and when they end in good order."""

from __future__ import annotations

import json
import os
import signal
import time

from . import proc
from .conftest import MakeProject
from .harness import Project
from .scenarios import stop_all
from .test_task_processes import in_processes, start, task_processes
from .waiting import wait_for

HOOKED = """
import json, os, time
from pathlib import Path

from steady_queue_core.hooks import on_task_process_exit, on_task_process_start

def note(*values):
    with Path(__file__).with_name("noted").open("a") as file:
        file.write(json.dumps(values) + "\\n")

@on_task_process_start
def begin(process):
    note("start", process.pid, os.getpid(), process.process_kind, process.process_name,
         process.using, process.metadata)
    raise RuntimeError("on purpose")

@on_task_process_exit
def end(process):
    time.sleep({pause})  # As long as it takes to send what has gathered.
    note("exit", process.pid, os.getpid())
"""


def noted(project: Project) -> list[list[object]]:
    path = project.folder / "noted"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def test_they_run_in_each_task_process_and_the_worker_waits_for_them(
    make_project: MakeProject,
) -> None:
    options = in_processes(threads=1, task_modules=["hooked"])
    project = make_project(options, files={"hooked.py": HOOKED.replace("{pause}", "0.3")})
    supervisor, worker = start(project)
    project.enqueue("echo", ["value"])
    project.wait_done()
    [first] = task_processes(worker)
    [[start_word, pid, own, kind, name, using, metadata]] = noted(project)
    assert [start_word, pid, own, kind, using] == [
        "start", first.pid, first.pid, "task_process", "default",
    ]  # fmt: skip
    assert str(name).startswith("worker-")
    assert metadata == {"queues": ["*"]}
    os.kill(first.pid, signal.SIGTERM)
    wait_for(lambda: len(noted(project)) == 2, 10, "the end of the first")
    assert noted(project)[1] == ["exit", first.pid, first.pid]
    project.enqueue("echo", ["another"])
    project.wait_done()
    [second] = task_processes(worker)
    stop_all(project)
    assert [line[:3] for line in noted(project)[2:]] == [
        ["start", second.pid, second.pid],
        ["exit", second.pid, second.pid],
    ]
    assert "The receiver begin of a signal failed: on purpose" in supervisor.errors()


def test_one_that_does_not_end_holds_nobody(make_project: MakeProject) -> None:
    options = in_processes(threads=1, task_modules=["hooked"])
    project = make_project(options, files={"hooked.py": HOOKED.replace("{pause}", "600")})
    _, worker = start(project)
    project.enqueue("echo", ["value"])
    project.wait_done()
    [process] = task_processes(worker)
    began = time.monotonic()
    stop_all(project)
    assert time.monotonic() - began < 15
    assert [line[0] for line in noted(project)] == ["start"]
    assert not proc.alive(process.pid)
