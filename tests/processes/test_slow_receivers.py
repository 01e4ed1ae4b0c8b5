"""Receivers that take longer than the tasks: nothing is left out without a word, or piles up."""

from __future__ import annotations

import re
import signal
import textwrap
import time
from pathlib import Path

import pytest

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue
from .waiting import wait_for

JOBS = 1500
RECEIVER = """
    import os
    import time
    from pathlib import Path

    from steady_queue_core.compat import task_finished

    told = os.open(Path(__file__).with_name("told.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def slow(task_result, **kwargs):
        os.write(told, f"{task_result.id}\\n".encode())
        time.sleep(SECONDS)

    task_finished.connect(slow, weak=False)
"""


def slow_project(make_project: MakeProject, seconds: float, **options: float) -> Project:
    text = textwrap.dedent(RECEIVER).replace("SECONDS", str(seconds))
    settings = queue(processes=1, threads=3, task_modules=["receiver"], **options)
    return make_project(settings, files={"receiver.py": text})


def told(project: Project) -> list[str]:
    path: Path = project.folder / "told.log"
    return path.read_text().split() if path.exists() else []


def finished(project: Project) -> int:
    return JOBS - project.unfinished()


@pytest.mark.parametrize(
    ("signum", "seconds", "patience", "all_sent"),
    [
        pytest.param(signal.SIGTERM, 0.02, 20, True, id="in-time"),
        pytest.param(signal.SIGTERM, 0.3, 1, False, id="too-slow"),
        pytest.param(signal.SIGQUIT, 0.05, 20, False, id="at-once"),
    ],
)
def test_at_a_stop_each_signal_is_sent_or_counted(
    make_project: MakeProject, signum: int, seconds: float, patience: float, all_sent: bool
) -> None:
    project = slow_project(make_project, seconds, shutdown_timeout=patience)
    supervisor = project.start()
    supervisor.wait_ready()
    project.enqueue("work", *[[0.0]] * JOBS)
    wait_for(lambda: len(told(project)) > 5, 20, "some signals")
    assert supervisor.stop(signum, 40) == 0
    sent = told(project)
    assert len(sent) == len(set(sent))
    counted = re.findall(
        r"(\d+) signals of tasks that have ended were not sent", supervisor.errors()
    )
    assert len(counted) == (0 if all_sent else 1), supervisor.errors()
    missing = finished(project) - len(sent)
    # One that was under way when there was no more time is counted, too.
    assert missing <= sum(map(int, counted)) <= missing + (0 if all_sent else 1)
    assert project.count("claimed_executions") == project.count("processes") == 0


def test_the_worker_claims_no_more_than_its_receivers_can_take_and_catches_up(
    make_project: MakeProject,
) -> None:
    project = slow_project(make_project, 0.005, process_heartbeat_interval=1)
    supervisor = project.start()
    supervisor.wait_ready()
    project.enqueue("work", *[[0.0]] * JOBS)
    behind = []

    def done() -> bool:
        sent = len(told(project))
        behind.append(finished(project) - sent)
        return sent == JOBS

    wait_for(done, 60, "all signals")
    assert max(behind) < JOBS / 2
    [(beat,)] = project.query("SELECT count(*) FROM steady_queue_processes WHERE kind = 'worker'")
    assert beat == 1
    began = time.monotonic()
    assert supervisor.stop() == 0
    assert time.monotonic() - began < 5
    assert "not sent" not in supervisor.errors()


SLOW_SUPERVISOR = """
    import time

    from steady_queue_core.signals import process_restarted, task_lost

    def slow(**kwargs):
        time.sleep(SECONDS)

    task_lost.connect(slow, weak=False)
    process_restarted.connect(slow, weak=False)
"""


@pytest.mark.parametrize("seconds", [0.5, 3600.0])
def test_no_worker_waits_for_receivers_in_the_supervisor(
    make_project: MakeProject, seconds: float
) -> None:
    text = textwrap.dedent(SLOW_SUPERVISOR).replace("SECONDS", str(seconds))
    settings = queue(processes=1, threads=20, task_modules=["receiver"])
    project = make_project(settings, files={"receiver.py": text})
    supervisor = project.start()
    for _ in range(2):
        [worker] = supervisor.wait_ready(1)
        jobs = project.enqueue("work", *[[60.0]] * 20)
        for job in jobs:
            project.wait_started(job)
        supervisor.send(signal.SIGKILL, worker)
        wait_for(lambda former=worker: supervisor.workers() not in ([], [former]), 5, "another")
        project.enqueue("work", [0.0])
        wait_for(lambda jobs=jobs: project.state_of(jobs[-1] + 1) == "finished", 5, "a job")
        wait_for(lambda jobs=jobs: project.state_of(jobs[0]) == "failed", 5, "a lost job")
    assert supervisor.stop(signal.SIGTERM, 20) == 0
    assert "signals of the supervisor were not sent" in supervisor.errors()
