"""USR1, USR2, TTIN and TTOU: what an operator asks a running queue for."""

from __future__ import annotations

import os
import pty
import re
import signal
import sys

import pytest

from .conftest import MODES, MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for

#: All lines go to a file, too, which each start begins anew.
LOG_FILE = """
    LOGGING["handlers"]["file"] = {
        "class": "logging.FileHandler", "filename": BASE_DIR / "queue.log", "mode": "w",
        "formatter": "line",
    }
    LOGGING["loggers"]["steady_queue"]["handlers"].append("file")
"""
OWN_HANDLER = """
    import signal
    from pathlib import Path

    signal.signal(signal.SIGUSR1, lambda *_: (BASE_DIR / "own").touch())
"""


#: Becomes a supervisor in the background of the terminal ``argv[1]``, and reads from it.
IN_BACKGROUND = """
import os, signal, sys, time

terminal = os.open(sys.argv[1], os.O_RDWR)
leader = os.getpid()
ready, done = os.pipe()
if os.fork() == 0:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpid())
    os.write(done, b".")
    while os.getppid() == leader:
        time.sleep(0.05)
    os._exit(0)
os.read(ready, 1)
os.dup2(terminal, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def pids_in(text: str) -> set[int]:
    """Return the pids of the processes that have written lines of a log."""
    return {int(pid) for pid in re.findall(r"^\S+ \S+ (\d+) ", text, re.MULTILINE)}


@pytest.mark.parametrize("mode", MODES)
def test_log_files_are_opened_anew_with_a_line_of_each_process(
    make_project: MakeProject, mode: str
) -> None:
    project = make_project(queue(processes=2), extra=LOG_FILE)
    supervisor = project.start("--mode", mode)
    wait_for(lambda: project.count("processes") >= 3, 20, "the processes")
    if mode == "fork":
        supervisor.wait_ready(2)
    log = project.folder / "queue.log"
    moved = log.rename(project.folder / "queue.log.1")
    supervisor.send(signal.SIGUSR1)
    everybody = {supervisor.pid, *supervisor.children()}

    def all_told() -> bool:
        return log.exists() and pids_in(log.read_text()) >= everybody

    wait_for(all_told, 10, "a line of each process")
    before = moved.read_text()
    if mode == "fork":
        assert log.read_text().count("queues *, 0 running") == 2
    supervisor.send(signal.SIGUSR1)
    wait_for(lambda: log.read_text().count("Supervisor (pid") == 2, 10, "the second answer")
    assert "Started worker" not in log.read_text()  # It was appended to, not written anew.
    stop_all(project)
    assert moved.read_text() == before


def stacks_of(project: Project, text: str) -> str:
    """Send USR2; return the first line with ``text`` in it."""
    supervisor = project.supervisors[0]
    supervisor.send(signal.SIGUSR2)

    def found() -> list[str]:
        return [line for line in supervisor.errors().splitlines() if text in line]

    return wait_for(found, 10, f"a stack with {text!r}: {supervisor.errors()}")[0]


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_stacks_name_the_job_and_the_place(make_project: MakeProject, executor: str) -> None:
    settings = queue(processes=1)
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    supervisor = project.start()
    supervisor.wait_ready()
    [job] = project.enqueue("work", [60.0])
    project.wait_started(job)
    line = stacks_of(project, "tasks.py:")
    assert f"runs job {job} (tests.faultapp.tasks.work, attempt 1): " in line
    assert re.search(r"faultapp/tasks\.py:\d+ work", line)
    stacks_of(project, "Supervisor._supervise")
    assert supervisor.stop() == 0


def test_stacks_of_coroutines(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    supervisor = project.start()
    supervisor.wait_ready()
    first, second = project.enqueue("awork", [60.0], [60.0])
    project.wait_started(second)
    for job in (first, second):
        line = stacks_of(project, f"A coroutine runs job {job} (tests.faultapp.tasks.awork")
        assert re.search(r"faultapp/tasks\.py:\d+ awork", line)
    assert supervisor.stop() == 0


def test_stacks_while_it_stops_and_while_the_database_is_away(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, shutdown_timeout=20))
    supervisor = project.start()
    supervisor.wait_ready()
    [job] = project.enqueue("work", [60.0])
    project.wait_started(job)
    with project.write_lock():
        supervisor.send(signal.SIGTERM)
        wait_for(lambda: "Stopping" in supervisor.errors(), 10, "the stop")
        stacks_of(project, f"runs job {job} ")
        stacks_of(project, "Supervisor._stop")
    supervisor.send(signal.SIGQUIT)
    assert supervisor.wait_exit() == 0


def test_a_handler_of_the_project_stays(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1), extra=OWN_HANDLER)
    supervisor = project.start()
    supervisor.wait_ready()
    supervisor.send(signal.SIGUSR1)
    wait_for(lambda: (project.folder / "own").exists(), 10, "its effect")
    stop_all(project)


def test_workers_more_and_fewer(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1))
    supervisor = project.start()
    [first] = supervisor.wait_ready()
    supervisor.send(signal.SIGTTIN)
    second = (set(supervisor.wait_ready(2)) - {first}).pop()
    jobs = project.enqueue("work", [2.0], [2.0])
    for job in jobs:
        project.wait_started(job)
    supervisor.send(signal.SIGTTOU)
    project.wait_done()  # The one that is too many may end its task.
    wait_for(lambda: supervisor.workers() == [first], 15, f"the end of {second}")
    supervisor.send(signal.SIGTTOU)
    wait_for(lambda: "There cannot be fewer workers" in supervisor.errors(), 10, "the refusal")
    assert supervisor.workers() == [first]
    stop_all(project)
    assert [len(project.attempts_at(job)) for job in jobs] == [1, 1]


@pytest.mark.fresh
def test_a_worker_more_is_replaced_when_it_dies_and_gone_after_a_restart(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1))
    supervisor = project.start()
    [first] = supervisor.wait_ready()
    supervisor.send(signal.SIGTTIN)
    second = (set(supervisor.wait_ready(2)) - {first}).pop()
    supervisor.send(signal.SIGKILL, second)
    wait_for(lambda: set(supervisor.workers()) - {first, second}, 15, "its successor")
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: "All processes are in place" in supervisor.errors(), 30, "the succession")
    wait_for(lambda: len(supervisor.workers()) == 1, 15, "one worker, as the settings have it")
    stop_all(project)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_task_that_reads_the_terminal_stops_nobody_and_adds_no_worker(
    make_project: MakeProject, executor: str
) -> None:
    settings = queue(processes=1, threads=1, task_modules=["tests.faultapp.rude"])
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    supervisor = project.start(under=[sys.executable, "-c", IN_BACKGROUND, name])
    supervisor.wait_ready()
    [job] = project.enqueue("rude:read_terminal")
    project.wait_done()
    found = project.query("SELECT return_value FROM steady_queue_jobs WHERE id = ?", job)
    assert found == [('[true,"","OSError"]',)]
    assert "One worker more" not in supervisor.errors()
    stop_all(project)
    os.close(master)
