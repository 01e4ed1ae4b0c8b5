"""Workers with older and newer code side by side: each runs the jobs of the tasks that it knows."""

from __future__ import annotations

from itertools import pairwise

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import queue, stop_all, verdict
from .waiting import wait_for

#: What only the newer code has.
NEWER = """
import time

from steady_queue_core import limits_concurrency, task
from tests.faultapp.effects import record

@task(takes_context=True)
def added(context):
    record("start", context)
    record("end", context)
    return context.token

@limits_concurrency(key="added", to=1)
@task(takes_context=True)
def added_alone(context):
    record("start", context)
    time.sleep(0.02)
    record("end", context)
    return context.token
"""
EXTRA = """
import os

if os.environ.get("NEWER"):
    STEADY_QUEUE["task_modules"] = ["newer"]
"""
ENQUEUE = "from newer import *; print(*({}.enqueue().id for _ in range({})))"


def enqueue(project: Project, task: str, count: int) -> list[int]:
    """Enqueue a task of the newer code, as a web process would that was replaced first."""
    done = project.manage("shell", "-c", ENQUEUE.format(task, count))
    assert done.returncode == 0, done.stderr
    ids = [int(word) for word in done.stdout.splitlines()[-1].split()]
    project.enqueued += ids
    return ids


@pytest.mark.parametrize("where", EVERYWHERE)
def test_jobs_of_a_task_that_only_newer_workers_know_are_left_to_them(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=1), extra=EXTRA, files={"newer.py": NEWER}, **where)
    older = project.start()
    older.wait_ready(1)
    added, alone = enqueue(project, "added", 12), enqueue(project, "added_alone", 4)
    # They do not stand in the way of others.
    others = project.enqueue("work", *[[0.0]] * 20)
    left = len(added) + len(alone)
    wait_for(lambda: project.unfinished() == left, 30, "the end of the others")
    assert {each.job_id for each in project.attempts()} == set(others)
    wait_for(lambda: older.errors().count("left to other workers") == 2, 20, "word of both tasks")
    assert project.unfinished() == left
    newer = project.start(under=["env", "NEWER=1"])
    newer.wait_ready(1)
    wait_for(lambda: project.unfinished() == 0, 90, "the end of all jobs")
    stop_all(project)
    assert verdict(project) == []
    jobs = project.snapshot().jobs
    assert {jobs[job_id].attempts for job_id in project.enqueued} == {1}
    assert project.count("failed_executions") == project.count("permits") == 0
    runs = [project.attempts_at(job_id)[0] for job_id in [*added, *alone]]
    assert {run.pid for run in runs}.isdisjoint(older.family)
    in_turn = sorted(runs[len(added) :], key=lambda run: run.started_at)
    for before, after in pairwise(in_turn):
        assert before.ended_at is not None
        assert before.ended_at <= after.started_at
    assert older.errors().count("left to other workers") == 2
