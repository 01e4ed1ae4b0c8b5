"""Processes that are replaced after so many jobs, or when they have become too large."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from .conftest import MakeProject
from .harness import Project, Supervisor
from .scenarios import SHORT_LEASE, SOON, freeze, queue, refusal, stop_all, verdict, wait_gone
from .waiting import wait_for

#: Lets only the first worker start its work; each later one waits for a file.
SLOW_START = """
import os, time
from pathlib import Path
from steady_queue_core.hooks import on_worker_start

folder = Path(__file__).parent

@on_worker_start
def wait(process):
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        (folder / f"waiting-{os.getpid()}").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
"""


def recycled(threads: int = 2, executor: str = "threads", **limits: int) -> dict[str, Any]:
    """Return a ``STEADY_QUEUE`` of one worker that is recycled, or its task processes are."""
    found = queue(processes=1, threads=threads, shutdown_timeout=0.5)
    found["workers"][0].update(executor=executor, **limits)
    return found


def slow_start(make_project: MakeProject, **limits: int) -> Project:
    options = recycled(**limits)
    options["task_modules"] = ["slow_start"]
    return make_project(options, files={"slow_start.py": SLOW_START})


def waiting(project: Project) -> list[int]:
    """Return the pids of the workers that wait for the file."""
    return [int(path.name.partition("-")[2]) for path in project.folder.glob("waiting-*")]


def successor(project: Project, *others: int) -> int:
    found = wait_for(lambda: set(waiting(project)) - set(others), 15, "a successor")
    return found.pop()


def run_by(project: Project, jobs: list[int]) -> set[int]:
    first = {attempt.job_id: attempt.pid for attempt in reversed(project.attempts())}
    return {first[job_id] for job_id in jobs}


def finished_in_one_attempt(project: Project, jobs: list[int]) -> bool:
    rows = project.snapshot().jobs
    return all((rows[each].states, rows[each].attempts) == (("finished",), 1) for each in jobs)


def start(project: Project) -> tuple[Supervisor, int]:
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    return supervisor, worker


def test_a_worker_goes_on_until_its_successor_is_at_work(make_project: MakeProject) -> None:
    project = slow_start(make_project, recycle_after=10)
    supervisor, first = start(project)
    early = project.enqueue("work", *[[0.0]] * 10)
    project.wait_done()
    second = successor(project)
    wait_for(lambda: second in supervisor.workers(), 10, "its registration")
    meanwhile: list[int] = []
    # The supervisor looks once a second.
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        meanwhile += project.enqueue("work", *[[0.0]] * 10)
        project.wait_done()
    assert run_by(project, early + meanwhile) == {first}
    [long] = project.enqueue("work", [3.0])  # Far longer than the shutdown time-out.
    assert project.wait_started(long).pid == first
    (project.folder / "go").touch()
    wait_gone([first], 15)
    late = project.enqueue("work", *[[0.0]] * 5)
    project.wait_done()
    assert run_by(project, late) == {second}
    assert finished_in_one_attempt(project, [*early, *meanwhile, long, *late])
    assert supervisor.workers() == [second]
    assert "has run 10 jobs and is to be recycled" in supervisor.errors()
    stop_all(project)
    assert verdict(project) == []


def test_a_successor_that_dies_is_replaced_and_then_the_worker_retires(
    make_project: MakeProject,
) -> None:
    project = slow_start(make_project, recycle_after=1)
    supervisor, first = start(project)
    project.enqueue("work", [0.0])
    second = successor(project)
    wait_for(lambda: second in supervisor.workers(), 10, "its registration")
    supervisor.send(signal.SIGKILL, second)
    third = successor(project, second)
    (project.folder / "go").touch()
    wait_gone([first], 15)
    wait_for(lambda: supervisor.workers() == [third], 10, "one worker")
    stop_all(project)
    assert verdict(project) == []


def test_a_worker_killed_while_its_successor_starts_gets_no_second_one(
    make_project: MakeProject,
) -> None:
    project = slow_start(make_project, recycle_after=1)
    supervisor, first = start(project)
    project.enqueue("work", [0.0])
    second = successor(project)
    supervisor.send(signal.SIGKILL, first)
    wait_gone([first], 5)
    (project.folder / "go").touch()
    jobs = project.enqueue("work", [0.0])
    project.wait_done()
    assert run_by(project, jobs) == {second}
    wait_for(lambda: second not in supervisor.workers(), 15, "its own retirement")
    assert len(waiting(project)) == 2
    stop_all(project)


@pytest.mark.thorough
def test_a_worker_that_freezes_while_it_retires_gets_no_second_successor(
    make_project: MakeProject,
) -> None:
    project = make_project(recycled(recycle_after=1) | SHORT_LEASE, extra=SOON)
    supervisor, first = start(project)
    [long] = project.enqueue("work_again", [60.0])
    project.wait_started(long)
    project.enqueue("work", [0.0])
    wait_for(lambda: len(supervisor.workers()) == 2, 15, "a successor")
    [second] = {*supervisor.workers()} - {first}
    freeze(project, supervisor, first)
    wait_gone([first], 30)
    assert project.wait_started(long, 2).pid == second
    # A second one would have been started when the first one was found to be frozen.
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        assert supervisor.workers() == [second]
    stop_all(project)


def test_a_stop_while_a_successor_starts_ends_both_in_time(make_project: MakeProject) -> None:
    project = slow_start(make_project, recycle_after=1)
    supervisor, first = start(project)
    project.enqueue("work", [0.0])
    second = successor(project)
    [long] = project.enqueue("work", [60.0])
    project.wait_started(long)
    assert supervisor.stop(seconds=10) == 0
    wait_gone([first, second], 1)
    assert project.state_of(long) == "ready"
    assert project.snapshot().jobs[long].attempts == 0


@pytest.mark.parametrize(
    "executor", ["threads", pytest.param("processes", marks=pytest.mark.thorough)]
)
def test_a_process_that_has_become_too_large_is_replaced(
    make_project: MakeProject, executor: str
) -> None:
    project = make_project(recycled(1, executor, recycle_rss=250_000_000))
    supervisor, worker = start(project)
    pids: list[int] = []
    jobs: list[int] = []

    def leaked() -> bool:
        [job] = project.enqueue("leak", [60_000_000])
        jobs.append(job)
        project.wait_done()
        pids.append(project.attempts_at(job)[0].pid)
        return len(set(pids)) == 3

    wait_for(leaked, 40, "three processes")
    assert finished_in_one_attempt(project, jobs)
    # Not after each job: what is small enough goes on.
    assert len(pids) > 4
    assert (worker in supervisor.workers()) is (executor == "processes")
    assert "recycle_rss is less" not in supervisor.errors()
    stop_all(project)


def test_a_limit_that_a_new_process_exceeds_is_reported(make_project: MakeProject) -> None:
    project = make_project(recycled(recycle_rss=1 << 20))
    supervisor, _ = start(project)
    wait_for(lambda: "recycle_rss is less" in supervisor.errors(), 5, "the warning")
    project.enqueue("work", *[[0.0]] * 3)
    project.wait_done()
    stop_all(project)


def test_a_task_process_is_replaced_between_two_jobs(make_project: MakeProject) -> None:
    project = make_project(recycled(2, "processes", recycle_after=5))
    supervisor, worker = start(project)
    jobs = project.enqueue("work", *[[0.0]] * 100)
    project.wait_done()
    assert finished_in_one_attempt(project, jobs)
    runs: dict[int, int] = {}
    for attempt in project.attempts():
        runs[attempt.pid] = runs.get(attempt.pid, 0) + 1
    assert set(runs.values()) <= {1, 2, 3, 4, 5}
    assert list(runs.values()).count(5) >= 18
    assert supervisor.workers() == [worker]
    stop_all(project)
    assert verdict(project) == []


@pytest.mark.parametrize("option", ["recycle_after", "recycle_rss"])
def test_a_worker_that_is_a_thread_refuses_to_be_recycled(
    make_project: MakeProject, option: str
) -> None:
    project = make_project(recycled(**{option: 5_000_000}))
    said = refusal(project, "--mode", "async")
    assert f"STEADY_QUEUE['workers'][0]['{option}'] is 5000000, which needs a worker" in said
