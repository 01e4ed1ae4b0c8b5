"""Stopping: nothing is lost, repeated or failed by it, whatever signals arrive when."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import suppress

import pytest

from . import proc
from .conftest import MakeProject
from .harness import SCALE
from .scenarios import durations, queue, stop_all, verdict
from .waiting import wait_for

STOPS = max(3, int(3 * SCALE))


@pytest.mark.slow
@pytest.mark.thorough
def test_restarts_under_load_repeat_nothing_and_fail_nothing(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2, threads=3, shutdown_timeout=4))
    running = [project.start(), project.start()]
    for supervisor in running:
        supervisor.wait_ready(2)
    client = project.new_client()
    exits = []
    try:
        for number in range(STOPS):
            calls = [*durations(700, 0.08, number), *durations(4, 2.0, number)]
            client.begin("enqueue", task="work", calls=calls)
            next_stop = time.monotonic() + 2.0
            project.enqueued += client.finish()
            while time.monotonic() < next_stop:
                time.sleep(0.05)
            supervisor = running.pop(0)
            began = time.monotonic()
            supervisor.send(signal.SIGTERM)
            running.append(project.start())
            assert supervisor.wait_exit() == 0
            exits.append(time.monotonic() - began)
    finally:
        client.close()
    project.wait_done(60)
    stop_all(project)
    assert max(exits) < 6
    assert verdict(project) == []
    assert len(project.attempts()) == len(project.enqueued)
    assert project.count("processes") == 0
    print(f"\n{len(project.enqueued)} jobs, exits after {[round(each, 1) for each in exits]} s")


def test_quit_gives_running_jobs_back_at_once(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1))
    supervisor = project.start()
    supervisor.wait_ready(1)
    jobs = project.enqueue("work", [2.0], [0.0])
    project.wait_started(jobs[0])
    began = time.monotonic()
    assert supervisor.stop(signal.SIGQUIT) == 0
    assert time.monotonic() - began < 3
    assert [project.state_of(job_id) for job_id in jobs] == ["ready", "ready"]
    assert project.count("processes") == project.count("claimed_executions") == 0
    assert not proc.in_session(supervisor.pid)
    assert project.start("--drain").wait_exit() == 0
    assert [project.state_of(job_id) for job_id in jobs] == ["finished", "finished"]
    assert [len(project.attempts_at(job_id)) for job_id in jobs] == [2, 1]


def test_a_task_that_outlasts_the_timeout_is_given_back_only_when_its_process_is_dead(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=1, shutdown_timeout=1))
    supervisor = project.start()
    supervisor.wait_ready(2)
    jobs = project.enqueue("work", [30.0], [30.0])
    holders = {job_id: project.wait_started(job_id).pid for job_id in jobs}
    began = time.monotonic()
    supervisor.send(signal.SIGTERM)

    def given_back() -> bool:
        ready = {job_id for (job_id,) in project.query(
            "SELECT job_id FROM steady_queue_ready_executions"
        )}  # fmt: skip
        # Looked at after the database: whoever is alive now was so when the row was written.
        assert not any(proc.alive(holders[job_id]) for job_id in ready)
        return ready == set(jobs)

    wait_for(given_back, 10, "the jobs' return")
    assert supervisor.wait_exit() == 0
    took = time.monotonic() - began
    assert took < 1 + 2 + 1
    assert all(attempt.ended_at is None for attempt in project.attempts())
    assert project.count("processes") == project.count("claimed_executions") == 0
    print(f"\nexit after {took:.1f} s")


@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGTERM] * 5,
        [signal.SIGINT, signal.SIGTERM, signal.SIGINT],
    ],
    ids=lambda signals: "+".join(signal.Signals(each).name for each in signals),
)
def test_repeated_signals_stop_gracefully_once(
    make_project: MakeProject, signals: list[int]
) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=10))
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [1.0])
    project.wait_started(job)
    for signum in signals:
        supervisor.send(signum)
        time.sleep(0.02)
    assert supervisor.wait_exit() == 0
    assert project.state_of(job) == "finished"
    assert "Traceback" not in supervisor.errors()
    assert project.count("processes") == 0
    assert verdict(project) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_within_a_second_stops_at_once(
    make_project: MakeProject, signum: int
) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=60))
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [50.0])
    project.wait_started(job)
    for _ in range(3):  # Until two of them are no more than a second apart: ours may be held up.
        supervisor.send(signum)
        time.sleep(0.4)
        supervisor.send(signum)
        with suppress(subprocess.TimeoutExpired):
            supervisor.process.wait(10)
            break
    assert supervisor.wait_exit(10) == 0
    assert project.state_of(job) == "ready"
    assert project.count("processes") == project.count("claimed_executions") == 0


def test_signals_further_apart_let_a_graceful_stop_go_on(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=60))
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [4.0])
    project.wait_started(job)
    supervisor.send(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        supervisor.process.wait(2.0)
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait_exit() == 0
    assert project.state_of(job) == "finished"


def test_an_interrupt_of_the_whole_group_as_by_a_terminal_stops_gracefully(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=1, shutdown_timeout=10))
    supervisor = project.start()
    supervisor.wait_ready(2)
    jobs = project.enqueue("work", *[[0.7]] * 2)
    for job_id in jobs:
        project.wait_started(job_id)
    supervisor.send_tree(signal.SIGINT)
    assert supervisor.wait_exit() == 0
    assert "Traceback" not in supervisor.errors()
    assert {project.state_of(job_id) for job_id in jobs} == {"finished"}
    assert verdict(project) == []


@pytest.mark.thorough
def test_quit_during_a_graceful_stop_ends_it(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=60))
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [60.0])
    project.wait_started(job)
    supervisor.send(signal.SIGTERM)
    wait_for(lambda: "Stopping" in supervisor.errors(), 10, "the stop")
    supervisor.send(signal.SIGQUIT)
    assert supervisor.wait_exit(5) == 0
    assert project.state_of(job) == "ready"
    assert project.count("processes") == 0


SLOW_FORKS = """
import os, time
os.register_at_fork(after_in_child=lambda: time.sleep(0.5))
"""


def test_a_stop_while_processes_are_being_forked_does_not_wait_for_the_timeout(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=3, shutdown_timeout=15), extra=SLOW_FORKS)
    supervisor = project.start()
    supervisor.wait_children()
    began = time.monotonic()
    assert supervisor.stop() == 0
    assert time.monotonic() - began < 5
    assert project.count("processes") == 0


def test_a_stop_while_the_database_is_locked_ends_in_time(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=1))
    supervisor = project.start()
    supervisor.wait_ready(1)
    with project.write_lock():
        began = time.monotonic()
        supervisor.send(signal.SIGTERM)
        wait_for(lambda: not supervisor.children(), 10, "the end of the children")
        print(f"\nchildren gone after {time.monotonic() - began:.1f} s")
    assert supervisor.wait_exit(40) == 0
    assert not proc.in_session(supervisor.pid)


def test_nohup_keeps_it_running(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1), extra=NOHUP)
    supervisor = project.start()
    supervisor.wait_ready(1)
    supervisor.send_tree(signal.SIGHUP)
    project.enqueue("work")
    project.wait_done()
    assert supervisor.stop() == 0


#: What ``nohup`` does.
NOHUP = """
    import signal

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
"""


def test_a_stop_while_the_database_is_away_is_no_attempt_either(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=0.2))
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [1.5])
    project.wait_started(job)
    with project.write_lock():
        assert supervisor.stop() == 0
    assert project.state_of(job) == "claimed"
    project.start().wait_ready(1)
    project.wait_done()
    stop_all(project)
    assert project.state_of(job) == "finished"
    [(attempts,)] = project.query("SELECT attempts FROM steady_queue_jobs WHERE id = ?", job)
    assert attempts == 1
    assert len(project.attempts_at(job)) == 2
