"""Jobs of one key that a worker claims and runs one after the other: judged by the effect log."""

from __future__ import annotations

import signal
import time
from threading import Event
from typing import Any

import pytest

from steady_queue_core.processes.worker import thread_pool
from steady_queue_core.processes.worker.thread_pool import ThreadPool

from .checker import Attempt
from .conftest import MakeProject
from .harness import Project, Supervisor
from .scenarios import freeze, queue, stop_all, thaw, verdict
from .test_limits import most_at_once, on_every_database
from .waiting import wait_for

SHORT = [0.0005]


def overlaps(attempts: list[Attempt], others: list[Attempt]) -> list[Attempt]:
    """Return those of ``attempts`` during which one of ``others`` was running."""
    return [
        each
        for each in attempts
        if any(
            each.started_at < (other.ended_at or 0) and other.started_at < (each.ended_at or 0)
            for other in others
        )
    ]


def drain(project: Project) -> int:
    """Wait until all is done; return how many jobs were claimed at once at most."""
    most = 0
    deadline = time.monotonic() + 60
    while project.unfinished():
        most = max(most, project.count("claimed_executions"))
        assert project.count("permits") <= 1
        assert time.monotonic() < deadline, project.logs()
        time.sleep(0.005)
    return most


def assert_one_by_one(project: Project) -> None:
    attempts = project.attempts()
    assert [attempt.job_id for attempt in attempts] == project.enqueued
    assert most_at_once(attempts, ()) == 1


@on_every_database
def test_the_jobs_of_a_key_run_in_their_order_and_many_are_claimed_at_once(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=2, threads=3), **where)
    project.enqueue("one_by_one", *[SHORT] * 600)
    project.start().wait_ready(2)
    most, deadline = drain(project), time.monotonic() + 60
    # On a busy machine there may have been few looks.
    while most <= 5 and time.monotonic() < deadline:
        project.enqueue("one_by_one", *[SHORT] * 600)
        most = drain(project)
    stop_all(project)
    assert_one_by_one(project)
    assert verdict(project) == []
    assert most > 5
    assert project.count("permits") == project.count("blocked_executions") == 0


@on_every_database
def test_a_worker_that_is_killed_within_a_chain_leaves_no_key_stuck(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=2, threads=2), **where)
    project.enqueue("one_by_one", *[SHORT] * 1000)
    supervisor = project.start()
    supervisor.wait_ready(2)
    for number in range(1, 6):
        wait_for(lambda n=number: len(project.attempts()) >= 150 * n, 20, "more starts")
        # The one that runs the chain: the other waits for the key.
        supervisor.send(signal.SIGKILL, project.attempts()[-1].pid)
    project.wait_done(40)
    stop_all(project)
    assert most_at_once(project.attempts(), project.kills) == 1
    assert verdict(project, threads=2) == []
    assert project.count("permits") == project.count("blocked_executions") == 0


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", ["no waiting in chains", "no heirs"])
def test_without_one_of_its_guards_jobs_of_a_key_overlap(
    mutant: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=2, threads=3))
    project.mutant = mutant
    project.enqueue("one_by_one", *[[0.002]] * 600)
    project.start().wait_ready(2)
    project.wait_done(40)
    stop_all(project)
    assert most_at_once(project.attempts(), ()) > 1


def test_functions_and_coroutines_of_one_key_run_in_their_order(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2, threads=2))
    for _ in range(10):
        project.enqueue("one_by_one", *[SHORT] * 12)
        project.enqueue("aone_by_one", *[SHORT] * 12)
        for name in ("one_by_one", "aone_by_one"):
            project.enqueue(name, SHORT)
    project.start().wait_ready(2)
    project.wait_done(40)
    stop_all(project)
    assert_one_by_one(project)
    assert verdict(project) == []


def test_a_worker_that_stops_gives_its_chains_back(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=2))
    project.enqueue("one_by_one", *[SHORT] * 1500)
    while project.unfinished():
        project.start().wait_ready(1)
        already = len(project.attempts())
        wait_for(lambda n=already: len(project.attempts()) > n + 300 or not project.unfinished(),
                 20, "more starts")  # fmt: skip
        stop_all(project)
        assert project.count("claimed_executions") == 0
    assert_one_by_one(project)
    assert verdict(project) == []


def begin_a_chain_with_a_long_job(project: Project, long: float) -> tuple[Supervisor, Attempt]:
    """Return the worker's supervisor and the attempt at a job that takes long."""
    project.enqueue("brief:brief", *[[0.0]] * 400)
    [slow] = project.enqueue("brief:brief", [long])
    project.enqueue("brief:brief", *[[0.0]] * 300, *[[0.02]] * 100)
    supervisor = project.start()
    supervisor.wait_ready(1)
    return supervisor, project.wait_started(slow)


@pytest.mark.thorough
def test_jobs_behind_a_long_one_go_back_to_their_places(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, task_modules=["tests.faultapp.brief"]))
    begin_a_chain_with_a_long_job(project, 4.0)
    wait_for(lambda: project.count("claimed_executions") == 1, 3, "the others to be given back")
    assert project.count("blocked_executions") == 400
    project.wait_done(40)
    stop_all(project)
    assert_one_by_one(project)
    assert verdict(project) == []


def resume_a_worker_with_a_chain(project: Project) -> list[Attempt]:
    """Suspend a worker whose chain then loses its permit to another worker; return the attempts of
    the first one that overlap with those of the other."""
    supervisor, slow = begin_a_chain_with_a_long_job(project, 0.15)
    freeze(project, supervisor, slow.pid)
    project.start().wait_ready(1)
    wait_for(lambda: {each.pid for each in project.attempts()} > {slow.pid}, 20, "another worker")
    thaw(supervisor, slow.pid)
    project.wait_done(40)
    stop_all(project)
    attempts = project.attempts()
    mine = [each for each in attempts if each.pid == slow.pid]
    return overlaps(mine, [each for each in attempts if each.pid != slow.pid])


def briefly(make_project: MakeProject) -> Project:
    """Return a project in which a permit lapses a second after the last heartbeat."""
    options = queue(
        processes=1,
        threads=1,
        task_modules=["tests.faultapp.brief"],
        process_heartbeat_interval=0.3,
    )
    options["dispatchers"][0]["concurrency_maintenance_interval"] = 0.2
    return make_project(options)


@pytest.mark.thorough
def test_a_worker_that_was_asleep_goes_on_with_no_chain(make_project: MakeProject) -> None:
    assert len(resume_a_worker_with_a_chain(briefly(make_project))) <= 1


@pytest.mark.thorough
def test_without_deadlines_a_worker_that_was_asleep_goes_on_with_its_chain(
    make_project: MakeProject,
) -> None:
    overlapping = 0
    for _ in range(6):  # The permit may come back before the worker goes on.
        project = briefly(make_project)
        project.mutant = "no deadlines in chains"
        overlapping = len(resume_a_worker_with_a_chain(project))
        if overlapping > 1:
            break
    assert overlapping > 1


def test_a_chain_that_takes_long_lets_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "TURN", 0.0)
    ran: list[str] = []
    done = Event()
    following: dict[str, Any] = {"a": ("b", None), "b": ("c", None)}

    def run(claim: Any, task: Any) -> Any:
        ran.append(claim)
        if len(ran) == 4:
            done.set()
        return following.get(claim)

    pool = ThreadPool(1, run)
    jobs: list[Any] = [("a", None), ("other", None)]
    pool.submit(jobs)
    assert done.wait(10)
    pool.close()
    assert ran == ["a", "other", "b", "c"]
