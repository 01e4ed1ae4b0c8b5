"""Jobs that expire while workers are busy, suspended or dead: real processes."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import freeze, queue
from .waiting import wait_for

EXPIRED = "steady_queue_core.errors.TaskExpired"


def settings(threads: int = 1, **worker: Any) -> dict[str, Any]:
    """Return a ``STEADY_QUEUE`` with one worker that knows the patient tasks."""
    found = queue(processes=1, threads=threads, task_modules=["tests.faultapp.patient"])
    found["workers"][0] |= worker
    return found


def assert_expired(project: Project, *jobs: int) -> None:
    for job in jobs:
        assert project.state_of(job) == "failed"
        [(text,)] = project.query(f"SELECT errors FROM steady_queue_jobs WHERE id = {job}")
        assert [path for path, *_ in json.loads(text)] == [EXPIRED]
        assert project.attempts_at(job) == []


def wait_for_expiry(project: Project, seconds: int) -> None:
    """Wait until all jobs have expired that do so after that time, in a database that is a file."""
    asked = f"SELECT strftime('%s', max(enqueued_at)) + {seconds + 1} FROM steady_queue_jobs"
    [(deadline,)] = project.query(asked)

    def has_passed() -> bool:
        [(present,)] = project.query("SELECT strftime('%s', 'now') + 0")
        return bool(present > deadline)

    wait_for(has_passed, 20, "the expiry of the jobs")


@pytest.mark.parametrize("executor", ["threads", "processes"])
@pytest.mark.parametrize("where", EVERYWHERE)
def test_jobs_that_wait_for_a_busy_worker_expire(
    where: dict[str, str], executor: str, make_project: MakeProject
) -> None:
    project = make_project(settings(executor=executor), **where)
    project.start().wait_ready(1)
    [long] = project.enqueue("patient:stay", [1.5])
    project.wait_started(long)
    brief = project.enqueue("work", *[[0.0]] * 3, periods={"expires": 0.5})
    brief += project.enqueue("patient:stay", *[[0.0]] * 3, periods={"expires": 0.5})
    patient = project.enqueue("work", *[[0.0]] * 3, periods={"expires": 600})
    plain = project.enqueue("work", *[[0.0]] * 3)
    project.wait_done(20)
    assert_expired(project, *brief)
    assert {project.state_of(job) for job in [long, *patient, *plain]} == {"finished"}


def test_jobs_that_a_suspended_worker_holds_expire(make_project: MakeProject) -> None:
    project = make_project(settings())
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    calls = [[2.0], [0.5], [0.5], [0.5]]
    running, *held = project.enqueue("patient:stay", *calls, periods={"expires": 2})
    project.wait_started(running)
    wait_for(lambda: "claimed" in map(project.state_of, held), 20, "the claim of another job")
    freeze(project, supervisor, worker)
    wait_for_expiry(project, seconds=2)
    assert "claimed" in map(project.state_of, held)
    supervisor.send(signal.SIGCONT, worker)
    project.wait_done(20)
    assert project.state_of(running) == "finished"
    assert_expired(project, *held)


def test_jobs_that_a_killed_worker_held_expire_with_another_one(make_project: MakeProject) -> None:
    project = make_project(settings())
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    running, *held = project.enqueue("patient:stay", *[[60.0]] * 3, periods={"expires": 1})
    project.wait_started(running)
    supervisor.send(signal.SIGKILL, worker)
    # The one that had started is tried again, however late; it is in the way of the others.
    again = project.wait_started(running, times=2)
    assert again.pid != worker
    supervisor.send(signal.SIGKILL, again.pid)
    project.wait_started(running, times=3)
    wait_for_expiry(project, seconds=1)
    project.client.call("cancel", ids=[running])
    project.wait_done(30)
    assert_expired(project, *held)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_jobs_are_kept_as_long_as_they_say(executor: str, make_project: MakeProject) -> None:
    project = make_project(settings(executor=executor, threads=2))
    supervisor = project.start()
    supervisor.wait_ready(1)
    gone = project.enqueue("work", *[[0.0]] * 3, periods={"retention": 0})
    kept = project.enqueue("work", *[[0.0]] * 3, periods={"retention": 3600})
    project.enqueue("work", *[[0.0]] * 3)
    project.wait_done(20)
    jobs = {job for (job,) in project.query("SELECT id FROM steady_queue_jobs")}
    assert jobs.isdisjoint(gone)
    rows = project.query("SELECT job_id FROM steady_queue_retentions ORDER BY job_id")
    assert [job for (job,) in rows] == kept
