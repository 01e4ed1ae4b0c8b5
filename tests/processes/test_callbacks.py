"""Each final outcome has exactly one callback, whatever is killed: real processes."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import durations, queue, stop_all
from .test_delivery import Troubles, failure_of
from .test_task_processes import task_processes

MODULE = ["tests.faultapp.callbacks"]


def settings_of(processes: int = 2, threads: int = 2, executor: str = "threads") -> dict[str, Any]:
    settings = queue(processes=processes, threads=threads, task_modules=MODULE)
    settings["workers"][0]["executor"] = executor
    return settings


def calls(project: Project, name: str) -> list[list[Any]]:
    """Return the arguments of all jobs of a task."""
    rows = project.query(
        "SELECT arguments FROM steady_queue_jobs WHERE task_path = ?",
        f"tests.faultapp.callbacks.{name}",
    )
    found = [json.loads(text) for (text,) in rows]
    return [each["args"] if isinstance(each, dict) else each[0] for each in found]


def check(project: Project, ids: list[int]) -> Counter[str]:
    """Compare the callbacks with the outcomes of jobs; return how many ended how."""
    rows = project.snapshot().jobs
    ended = {job_id: rows[job_id].states for job_id in ids}
    assert set(ended.values()) <= {("finished",), ("failed",)}
    finished = Counter(str(job) for job, state in ended.items() if state == ("finished",))
    failed = {str(job) for job, state in ended.items() if state == ("failed",)}
    assert Counter(args[0] for args in calls(project, "told_of_success")) == finished
    told = {args[0]: args[1:] for args in calls(project, "told_of_failure")}
    assert len(calls(project, "told_of_failure")) == len(told)
    assert told.keys() == failed
    for job_id, (path, message) in told.items():
        assert (path.rpartition(".")[2], message) == failure_of(project, int(job_id))
    # What a task leaves is stored with its success, all of it or nothing.
    left = Counter(args[0] for args in calls(project, "left"))
    assert left == Counter(dict.fromkeys(finished, 2))
    return Counter(finished=len(finished), failed=len(failed))


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("task", ["work", pytest.param("work_again", marks=pytest.mark.thorough)])
def test_each_final_outcome_has_one_callback_under_kills(
    make_project: MakeProject, where: dict[str, str], task: str
) -> None:
    project = make_project(settings_of(), **where)
    ids: list[int] = []

    def more() -> None:
        ids.extend(project.enqueue(f"callbacks:{task}", *durations(int(200 * SCALE), 0.1)))

    more()
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=11, pause=0.5)
    troubles.make_until_done(120, kills=3, more=more)
    stop_all(project)
    ended = check(project, ids)
    assert troubles.killed >= 3
    print(f"\n{troubles.killed} kills, {dict(ended)}")


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_task_processes_under_kills(make_project: MakeProject, where: dict[str, str]) -> None:
    project = make_project(settings_of(processes=1, executor="processes"), **where)
    ids = project.enqueue("callbacks:work", *durations(int(100 * SCALE), 0.05))
    [worker] = project.start().wait_ready(1)
    chance, killed = random.Random(5), 0
    while project.unfinished():
        if children := task_processes(worker):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(children).pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.3)
    stop_all(project)
    assert check(project, ids)["failed"]
    assert killed


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_callbacks_and_calls_are_stored_with_the_outcome(
    make_project: MakeProject, executor: str
) -> None:
    project = make_project(settings_of(processes=1, executor=executor))
    project.start().wait_ready(1)
    ids = project.enqueue("callbacks:work", *[[0.0]] * 14)
    project.enqueue("callbacks:discard", [])
    project.wait_done(30)
    stop_all(project)
    assert check(project, ids) == Counter(finished=12, failed=2)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_job_that_kills_its_worker_has_its_callback(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(processes=1, threads=1), **where)
    project.start().wait_ready(1)
    [job] = project.enqueue("callbacks:kill_itself", [])
    project.wait_done(30)
    stop_all(project)
    assert check(project, [job]) == Counter(finished=0, failed=1)
    assert failure_of(project, job)[0] == "ProcessExitError"
