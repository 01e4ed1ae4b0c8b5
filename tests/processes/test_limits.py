"""Concurrency limits among real processes, which are killed: judged by the effect log."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from ..servers.kinds import KINDS
from .checker import Attempt, Kill
from .conftest import EACH_SERVER, MakeProject
from .harness import SCALE, Project
from .scenarios import (
    SHORT_LEASE,
    SOON,
    durations,
    one_state_each,
    queue,
    stop_all,
    verdict,
    wait_gone,
)
from .storage import ServerDatabase
from .waiting import wait_for

LIMITS = {"one_by_one": 1, "in_pairs": 2, "in_fives": 5}

on_every_database = pytest.mark.parametrize(
    "where",
    [
        pytest.param({}, id="sqlite"),
        *(
            pytest.param({"on": alias}, marks=pytest.mark.server(alias), id=alias)
            for alias in KINDS
        ),
    ],
)


def most_at_once(attempts: Iterable[Attempt], kills: Iterable[Kill]) -> int:
    """Return how many ran at the same time; a killed one until its process was certainly dead."""
    killed = {kill.pid: kill.before for kill in kills if kill.signum == signal.SIGKILL}
    changes: list[tuple[int, int]] = []
    for attempt in attempts:
        ended_at = attempt.ended_at or killed[attempt.pid]
        changes += [(attempt.started_at, 1), (max(attempt.started_at, ended_at), -1)]
    most = running = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


def check_limits(project: Project, ids: dict[str, list[int]]) -> dict[str, int]:
    """Return how many of each task ran at once; nobody waits, and all permits are back."""
    attempts = project.attempts()
    most = {
        name: most_at_once([each for each in attempts if each.job_id in set(jobs)], project.kills)
        for name, jobs in ids.items()
    }
    assert project.count("blocked_executions") == project.count("permits") == 0
    permits = project.query("SELECT value FROM steady_queue_semaphores")
    assert sorted(permits) in (
        [],
        [(LIMITS[name],) for name in sorted(ids, key=LIMITS.__getitem__)],
    )
    return most


def test_overlap_is_found() -> None:
    """The measure itself: two that overlap, one after them, and one that was killed."""
    attempts = [Attempt(1, 1, 7, 10, 20), Attempt(2, 1, 8, 15, 30), Attempt(3, 1, 9, 30, None)]
    assert most_at_once(attempts, [Kill(9, 40, 41)]) == 2
    assert most_at_once([*attempts, Attempt(4, 1, 8, 39, 50)], [Kill(9, 40, 41)]) == 2
    assert most_at_once([*attempts, Attempt(4, 1, 8, 40, 50)], [Kill(9, 40, 41)]) == 2


@pytest.mark.slow
@on_every_database
def test_no_more_run_at_once_than_the_limits_allow_though_workers_are_killed(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    jobs = int(600 * SCALE)
    project = make_project(queue(processes=4, threads=1), **where)
    supervisors = [project.start(), project.start()]
    for supervisor in supervisors:
        supervisor.wait_ready(4)
    chance = random.Random(3)
    share = jobs // len(LIMITS)
    ids: dict[str, list[int]] = {name: [] for name in LIMITS}

    def more() -> None:
        for name, limit in LIMITS.items():
            ids[name] += project.enqueue(name, *durations(share, 0.004 * limit, seed=limit))

    more()
    deadline = time.monotonic() + 60 + jobs / 20
    killed = 0
    while project.unfinished() or killed < 2:
        if not project.unfinished():  # A slow machine has looked too late.
            more()
        next_kill = time.monotonic() + min(1.0, 0.2 * SCALE)
        one_state_each(project)
        supervisor = chance.choice(supervisors)
        worker = chance.choice(supervisor.wait_ready(1))
        killed += supervisor.send(signal.SIGKILL, worker) is not None
        while time.monotonic() < next_kill and project.unfinished():
            time.sleep(0.05)
        assert time.monotonic() < deadline, project.logs()
    stop_all(project)
    assert verdict(project, threads=1) == []
    most = check_limits(project, ids)
    assert killed >= 2
    print(f"\n{sum(map(len, ids.values()))} jobs, {killed} kills, at once: {most}")
    assert all(most[name] <= limit for name, limit in LIMITS.items())
    assert most["in_fives"] > 1, "they have to overlap, to prove anything"


@on_every_database
def test_a_permit_of_a_process_that_is_silent_for_its_duration_is_given_to_the_next(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    modules = ["tests.faultapp.brief"]
    options = queue(processes=1, threads=1, process_heartbeat_interval=0.3, task_modules=modules)
    options["dispatchers"][0]["concurrency_maintenance_interval"] = 0.5
    project = make_project(options, **where)
    first, second = project.start(), project.start()
    for supervisor in (first, second):
        supervisor.wait_ready(1)
    [holder] = project.enqueue("brief:brief", [3.0])
    held = project.wait_started(holder)
    [waiting] = project.enqueue("brief:brief", [0.0])
    # It runs longer than its duration, and keeps its permit as long as its process is heard of.
    wait_for(lambda: time.monotonic_ns() - held.started_at > 2e9, 10, "twice its duration")
    assert project.state_of(waiting) == "blocked"
    holding = first if held.pid in first.children() else second
    holding.send(signal.SIGSTOP, held.pid)
    project.wait_started(waiting)
    holding.send(signal.SIGCONT, held.pid)
    project.wait_done(20)
    assert project.count("permits") == project.count("blocked_executions") == 0
    stop_all(project)


def test_jobs_that_are_due_take_their_permits_one_after_the_other(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=2, **SHORT_LEASE), extra=SOON)
    project.start().wait_ready(2)
    ids = {"one_by_one": project.enqueue("one_by_one", *[[0.05]] * 5, delay=0.3)}
    project.wait_done(20)
    stop_all(project)
    assert check_limits(project, ids) == {"one_by_one": 1}
    assert len(project.attempts()) == 5


def test_of_jobs_that_are_not_to_wait_one_runs_and_the_others_are_gone(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=2))
    project.start().wait_ready(2)
    ids = project.enqueue("alone", *[[0.3]] * 4, delay=0.2)
    wait_for(lambda: project.count("jobs") == 1, 10, "the others to be discarded")
    project.wait_done(20)
    assert len(project.attempts()) == 1
    assert project.attempts()[0].job_id in ids
    project.enqueued = [project.attempts()[0].job_id]
    stop_all(project)
    assert verdict(project) == []


@contextmanager
def kept_locked(project: Project) -> Iterator[None]:
    """Keep the semaphores locked, as whoever enqueues does in a transaction that takes long."""
    assert isinstance(project.storage, ServerDatabase)
    with project.storage.locked("SELECT 1 FROM steady_queue_semaphores FOR UPDATE"):
        yield


def wait_ended(project: Project, job_id: int) -> None:
    """Wait for the end of a task, not of its job."""
    wait_for(
        lambda: project.attempts_at(job_id)[0].ended_at, 10, f"the end of the task of {job_id}"
    )


@pytest.mark.parametrize("alias", EACH_SERVER)
def test_a_semaphore_that_is_kept_locked_holds_up_no_other_job(
    alias: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=1, threads=3), on=alias)
    project.start().wait_ready(1)
    limited, waiting = project.enqueue("one_by_one", [1.0], [0.0])
    project.wait_started(limited)
    with kept_locked(project):
        wait_ended(project, limited)
        for _ in range(2):
            project.enqueue("work", *[[0.0]] * 20)
            wait_for(lambda: project.unfinished() == 2, 20, "the end of all others")
        assert project.state_of(limited) == "claimed"
    project.wait_done(30)
    assert len(project.attempts_at(waiting)) == 1
    stop_all(project)
    assert verdict(project) == []


@pytest.mark.parametrize("alias", EACH_SERVER)
def test_a_stop_while_a_semaphore_is_kept_locked_stores_the_other_outcomes(
    alias: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=1, threads=3, shutdown_timeout=8), on=alias)
    supervisor = project.start()
    supervisor.wait_ready(1)
    [limited] = project.enqueue("one_by_one", [1.0])
    for each in (limited, *project.enqueue("work", [2.0], [2.0])):
        project.wait_started(each)
    with kept_locked(project):
        wait_ended(project, limited)
        supervisor.send(signal.SIGTERM)
        wait_for(lambda: project.unfinished() == 1, 10, "the end of both others")
    assert supervisor.wait_exit() == 0


@pytest.mark.parametrize("alias", EACH_SERVER)
def test_a_semaphore_that_is_kept_locked_stops_no_dispatcher(
    alias: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=1, threads=1), on=alias)
    # One is blocked, though there is a permit: the maintenance would admit it.
    project.enqueue("one_by_one", [0.0], [0.0])
    project.query("DELETE FROM steady_queue_permits")
    with kept_locked(project):
        project.start().wait_ready(1)
        wait_for(lambda: project.count("samples"), 30, "what comes after the maintenance")
        [late] = project.enqueue("work", [0.0], delay=0.2)
        wait_for(lambda: project.state_of(late) == "finished", 20, "a job that was due")
    stop_all(project)


@pytest.mark.parametrize("alias", EACH_SERVER)
def test_a_rescue_that_waits_for_a_semaphore_stops_no_heartbeat(
    alias: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=1, threads=2, **SHORT_LEASE), on=alias)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [limited] = project.enqueue("one_by_one", [30.0])
    project.wait_started(limited)

    def heartbeat() -> object:
        statement = "SELECT last_heartbeat_at FROM steady_queue_processes WHERE kind = 'supervisor'"
        [[found]] = project.query(statement)
        return found

    with kept_locked(project):
        supervisor.send(signal.SIGKILL, worker)
        wait_gone([worker], 10)
        for number in range(3):
            before = heartbeat()
            wait_for(lambda before=before: heartbeat() != before, 20, f"heartbeat {number}")
        assert project.state_of(limited) == "claimed"
    assert project.wait_started(limited, 2).pid != worker
    stop_all(project)
