"""At most one live job has a key, whatever is killed: real processes."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from typing import Any

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import queue, stop_all
from .test_delivery import failure_of
from .waiting import wait_for

MODULE = ["tests.faultapp.unique"]
KEYS = "abcd"


def settings_of(executor: str = "threads", **options: Any) -> dict[str, Any]:
    settings = queue(processes=2, threads=2, task_modules=MODULE, **options)
    settings["workers"][0]["executor"] = executor
    return settings


def owners(project: Project) -> dict[str, int]:
    """Return which job has each key."""
    rows = project.query("SELECT k.key, k.job_id FROM steady_queue_unique_keys k")
    return {key.rpartition("/")[2]: job_id for key, job_id in rows}


def live(project: Project, where: str = "finished_at IS NULL") -> Counter[str]:
    """Return how many jobs of each key live, as they are at one moment."""
    rows = project.query(f"SELECT arguments FROM steady_queue_jobs WHERE {where}")
    found = [json.loads(text) for (text,) in rows]
    return Counter((each["args"] if isinstance(each, dict) else each[0])[0] for each in found)


def test_a_job_that_does_not_start_keeps_its_key(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=0.1, task_modules=MODULE))
    # Short ones first, so that the worker claims ahead of its thread.
    project.enqueue("unique:in_line", *[[f"short {number}", 0.002] for number in range(40)])
    project.start().wait_ready(1)
    calls = [[f"short {number}", 0.002] for number in range(40, 80)]
    calls += [["long", 60.0], ["x"], ["y"], ["z"]]
    jobs = project.enqueue("unique:in_line", *calls)
    project.wait_started(jobs[40])
    wait_for(lambda: all("ready" in project.state_of(job) for job in jobs[41:]), 5)
    assert owners(project) == dict(zip("xyz", jobs[41:], strict=True))
    started = "SELECT count(*) FROM steady_queue_jobs WHERE started_at IS NOT NULL"
    assert project.query(started) == [(81,)]
    stop_all(project)


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize(
    ("name", "executor"),
    [
        ("work", "threads"),
        pytest.param("work_once", "threads", marks=pytest.mark.thorough),
        pytest.param("in_line", "threads", marks=pytest.mark.thorough),
        pytest.param("work", "processes", marks=pytest.mark.thorough),
    ],
)
def test_at_most_one_job_of_a_key_lives_under_kills(
    make_project: MakeProject, where: dict[str, str], name: str, executor: str
) -> None:
    project = make_project(settings_of(executor), **where)
    supervisor = project.start()
    supervisor.wait_ready(2)
    chance, killed, made = random.Random(3), 0, set[int]()
    began, deadline = time.monotonic(), time.monotonic() + 90 * SCALE
    # A job that has no key any more has started.
    counted = "finished_at IS NULL AND started_at IS NULL" if name == "in_line" else (
        "finished_at IS NULL"
    )  # fmt: skip
    # For so long, and on a slow machine until enough has happened.
    while time.monotonic() < began + 12 * SCALE or killed < 3 or len(made) <= len(KEYS):
        assert time.monotonic() < deadline, project.logs()
        next_kill = time.monotonic() + 0.6
        while time.monotonic() < next_kill:
            made.update(project.enqueue(f"unique:{name}", [chance.choice(KEYS), 0.1]))
            assert max(live(project, counted).values(), default=0) <= 1
        if workers := supervisor.workers():
            killed += supervisor.send(signal.SIGKILL, chance.choice(workers)) is not None
    project.wait_done()
    stop_all(project)
    assert killed >= 3
    assert owners(project) == {}
    assert len(project.snapshot().jobs) == len(made) > len(KEYS)
    print(f"\n{killed} kills, {len(project.enqueued)} calls, {len(made)} jobs")


@pytest.mark.parametrize("where", EVERYWHERE)
def test_the_key_of_a_job_whose_worker_is_killed_lives_on_with_it(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(), **where)
    supervisor = project.start()
    supervisor.wait_ready(2)
    [again] = project.enqueue("unique:work", ["a", 2.0])
    [once] = project.enqueue("unique:work_once", ["b", 60.0])
    project.wait_started(again)
    attempt = project.wait_started(once)
    assert project.enqueue("unique:work_once", ["b"]) == [once]
    supervisor.send(signal.SIGKILL, attempt.pid)
    supervisor.send(signal.SIGKILL, project.wait_started(again).pid)
    project.wait_started(again, times=2)
    assert project.enqueue("unique:work", ["a"]) == [again]
    wait_for(lambda: project.state_of(once) == "failed", 20, "the end of the job")
    assert failure_of(project, once)[0] == "ProcessExitError"
    assert owners(project) == {"a": again}
    project.wait_done()
    assert owners(project) == {}
    [new] = project.enqueue("unique:work_once", ["b"])
    assert new not in (again, once)
    project.wait_done()
    stop_all(project)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_key_until_the_start_is_free_while_the_job_runs(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(), **where)
    supervisor = project.start()
    supervisor.wait_ready(2)
    [first] = project.enqueue("unique:in_line", ["a", 1.0])
    project.wait_started(first)
    assert owners(project) == {}
    [second] = project.enqueue("unique:in_line", ["a", 0.0])
    assert second != first
    project.wait_done()
    stop_all(project)
    assert {each.job_id for each in project.attempts()} == {first, second}


def test_a_job_that_waits_for_a_permit_has_its_key_until_its_own_start(
    make_project: MakeProject,
) -> None:
    project = make_project(settings_of())
    supervisor = project.start()
    supervisor.wait_ready(2)
    ids = [project.enqueue("unique:in_line_alone", [key, 0.6])[0] for key in "abc"]
    for number, job_id in enumerate(ids):
        project.wait_started(job_id)
        assert owners(project) == dict(zip("abc"[number + 1 :], ids[number + 1 :], strict=True))
    project.wait_done()
    stop_all(project)
    assert Counter(each.job_id for each in project.attempts()) == Counter(ids)
