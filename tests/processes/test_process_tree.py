"""What signals and crashes do to a supervisor and its processes: on every database."""

from __future__ import annotations

import signal

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, registered, stop_all, wait_gone
from .test_limits import check_limits, on_every_database
from .waiting import wait_for


def attempts_used(project: Project, job_id: int) -> int:
    [(used,)] = project.query("SELECT attempts FROM steady_queue_jobs WHERE id = ?", job_id)
    return int(used)


def errors(project: Project) -> dict[int, str]:
    """Return the class of the error of each job that has failed."""
    rows = project.query("SELECT job_id, exception_class FROM steady_queue_failed_executions")
    return {job_id: path.rpartition(".")[2] for job_id, path in rows}


@on_every_database
def test_a_supervisor_that_ends_leaves_finished_jobs_or_ready_ones(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=1, threads=2, shutdown_timeout=1.5), **where)
    [long] = project.enqueue("work", [30.0], queue="long")
    rounds = [
        ([signal.SIGTERM] * 5, 0.3, "finished"),
        ([signal.SIGINT], 0.3, "finished"),
        ([signal.SIGQUIT], 10.0, "ready"),
    ]
    for number, (signals, seconds, end) in enumerate(rounds, start=1):
        supervisor = project.start()
        [short] = project.enqueue("work", [seconds], queue="short")
        project.wait_started(long, times=number)
        project.wait_started(short)
        for signum in signals:
            supervisor.send(signum)
        assert supervisor.wait_exit() == 0
        assert "Traceback" not in supervisor.errors()
        assert (project.state_of(short), project.state_of(long)) == (end, "ready")
        assert attempts_used(project, long) == 0
        assert project.count("processes") == project.count("claimed_executions") == 0


@on_every_database
def test_what_a_killed_supervisor_was_doing_is_done_and_what_waits_runs_under_the_next(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=1, threads=1), **where)
    first = project.start()
    first.wait_ready(1)
    [running] = project.enqueue("work", [0.7])
    project.wait_started(running)
    children = first.children()
    first.send(signal.SIGKILL)
    first.wait_exit()
    wait_gone(children, 10)
    assert project.state_of(running) == "finished"
    assert registered(project, first.pid)
    # Two at once: each due job is moved by one of their dispatchers, and runs once.
    due = [*project.enqueue("work", *[[0.0]] * 10, delay=0.2), *project.enqueue("work", [0.0])]
    successors = [project.start(), project.start()]
    for successor in successors:
        successor.wait_ready(1)
    project.wait_done(20)
    wait_for(lambda: not registered(project, first.pid), 10, "the end of the dead one's row")
    stop_all(project)
    assert [each.errors().count("Traceback") for each in successors] == [0, 0]
    assert [len(project.attempts_at(job)) for job in (running, *due)] == [1] * 12
    assert project.count("processes") == 0


@on_every_database
def test_a_worker_that_ends_is_replaced_and_costs_what_it_was_running(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=1, threads=1), **where)
    supervisor = project.start()
    [told] = supervisor.wait_ready(1)
    [finishes] = project.enqueue("work", [0.6])
    project.wait_started(finishes)
    supervisor.send(signal.SIGTERM, told)
    [killed] = project.enqueue("work", [30.0])
    second = project.wait_started(killed).pid
    assert second != told
    assert project.state_of(finishes) == "finished"
    supervisor.send(signal.SIGKILL, second)
    # Short ones first, until the worker claims ahead of its thread.
    others = project.enqueue("work", *[[0.002]] * 60)
    [leaves] = project.enqueue("leave", [3])
    others += project.enqueue("work", *[[0.002]] * 20)
    [flaky] = project.enqueue("flaky", [2])
    limited = {"one_by_one": project.enqueue("one_by_one", *[[0.05]] * 3, delay=0.2)}
    project.wait_done(30)
    stop_all(project)
    others += project.enqueue("work", *[[0.0]] * 3)
    assert project.start("--drain").wait_exit() == 0
    assert errors(project) == {killed: "ProcessExitError", leaves: "ProcessExitError"}
    assert {len(project.attempts_at(job)) for job in others} == {1}
    assert {attempt.pid for attempt in project.attempts_at(killed)} == {second}
    assert len(project.attempts_at(flaky)) == 3
    assert project.state_of(flaky) == "finished"
    assert check_limits(project, limited) == {"one_by_one": 1}
    assert project.count("processes") == project.count("claimed_executions") == 0
