"""What killed and stopped processes cost: what they were running, and nothing else."""

from __future__ import annotations

import random
import signal
import time

import pytest

from . import proc
from .conftest import MakeProject
from .harness import SCALE
from .scenarios import (
    SHORT_LEASE,
    SOON,
    SPARING,
    busy_worker,
    durations,
    freeze,
    one_state_each,
    queue,
    registered,
    stop_all,
    thaw,
    verdict,
    wait_gone,
    wait_pruned,
)
from .waiting import wait_for


@pytest.mark.slow
def test_killed_workers_cost_only_the_jobs_that_they_were_running(
    make_project: MakeProject,
) -> None:
    jobs = int(5000 * SCALE)
    project = make_project(queue(processes=2, threads=1))
    supervisors = [project.start(), project.start()]
    for supervisor in supervisors:
        supervisor.wait_ready(2)
    client = project.new_client()
    chance = random.Random(5)
    try:
        client.begin("enqueue", task="work_again", calls=durations(jobs // 2, 0.02))
        project.enqueue("work", *durations(jobs - jobs // 2, 0.02, seed=2))
        deadline = time.monotonic() + 60 + jobs / 50
        killed = 0
        while True:
            next_kill = time.monotonic() + 1.0
            one_state_each(project)
            supervisor = chance.choice(supervisors)
            if workers := supervisor.workers():
                killed += supervisor.send(signal.SIGKILL, chance.choice(workers)) is not None
            if len(project.enqueued) < jobs:
                project.enqueued += client.finish()
            while time.monotonic() < next_kill and project.unfinished():
                time.sleep(0.05)
            if not project.unfinished():
                break
            assert time.monotonic() < deadline, project.logs()
    finally:
        client.close()
    stop_all(project)
    assert killed >= 3
    assert verdict(project, threads=1) == []
    assert project.count("claimed_executions") == project.count("processes") == 0
    snapshot = project.snapshot()
    failed = sum(row.states == ("failed",) for row in snapshot.jobs.values())
    print(f"\n{jobs} jobs, {killed} kills: {failed} failed, {len(project.attempts())} starts")


def test_the_processes_of_a_killed_supervisor_end_and_a_new_one_starts_at_once(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=2, supervisor_pidfile="queue.pid"))
    first = project.start()
    workers = first.wait_ready(2)
    [long] = project.enqueue("work", [60.0])
    project.wait_started(long)
    project.enqueue("work", *durations(300, 0.02))
    wait_for(lambda: len(project.attempts()) > 10, 20, "some starts")
    children = first.children()
    assert set(workers) < set(children)
    kill = first.send(signal.SIGKILL)
    assert kill is not None
    second = project.start()
    took = wait_gone(children, 5.0)
    # The one with the long task cannot end gracefully.
    holder = project.attempts_at(long)[0].pid
    project.kills.append(kill._replace(pid=holder, after=time.monotonic_ns()))
    project.wait_done(30)
    assert second.process.poll() is None
    assert project.state_of(long) == "failed"
    stop_all(project)
    assert verdict(project) == []
    print(f"\nchildren gone after {took:.1f} s")


@pytest.mark.thorough
def test_a_supervisor_killed_while_it_starts_leaves_nothing_behind(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=3, supervisor_pidfile="queue.pid"))
    source = random.Random(7)
    for _ in range(4):
        supervisor = project.start()
        supervisor.wait_children()
        time.sleep(source.uniform(0, 0.05))
        children = supervisor.children()
        supervisor.send(signal.SIGKILL)
        supervisor.wait_exit()
        wait_gone(children, 5.0)
        wait_for(lambda pid=supervisor.pid: not proc.in_session(pid), 5, "the end of the others")
    ids = project.enqueue("work", [0.0], [0.0])
    last = project.start()
    project.wait_done(20)
    assert [project.state_of(job_id) for job_id in ids] == ["finished", "finished"]
    wait_for(lambda: project.count("processes") == len(last.children()) + 1, 15, "a clean registry")
    stop_all(project)
    assert verdict(project) == []


def test_a_stopped_worker_loses_its_jobs_and_records_nothing_when_it_resumes(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=2, **SHORT_LEASE), extra=SPARING)
    supervisor = project.start()
    supervisor.wait_ready(2)
    for seed in range(max(1, int(SCALE))):
        # Longer than it may take to find a moment to stop their worker.
        [once] = project.enqueue("work", [4.0])
        [again] = project.enqueue("work_again", [4.0])
        stopped = project.wait_started(again).pid
        project.wait_started(once)
        project.enqueue("work", *durations(150, 0.02, seed))
        project.enqueue("note", *durations(20, 0.005, seed))
        freeze(project, supervisor, stopped)
        wait_pruned(project, stopped)
        second = project.wait_started(again, times=2)
        assert second.pid != stopped
        thaw(supervisor, stopped)
        project.wait_done(40)
        wait_gone([stopped], 20)
        assert project.state_of(again) == "finished"
        supervisor.wait_ready(2)
        one_state_each(project)
    ended = [attempt for attempt in project.attempts_at(again) if attempt.ended_at]
    assert len(ended) == 2, "the stopped worker should have gone on, to prove anything"
    assert "The claim of job" in supervisor.errors()
    stop_all(project)
    assert verdict(project) == []


@pytest.mark.slow
def test_a_worker_stopped_in_a_transaction_does_not_hold_up_the_others_for_ever(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=1, **SHORT_LEASE), extra=SOON)
    supervisor = project.start()
    supervisor.wait_ready(2)
    [freezer] = project.enqueue("freeze_in_transaction")
    frozen = project.wait_started(freezer).pid
    began = time.monotonic()
    wait_gone([frozen], 30)
    print(f"\nfrozen worker gone after {time.monotonic() - began:.1f} s")
    project.enqueue("work", *durations(20, 0.01))
    project.wait_done(30)
    assert project.state_of(freezer) == "finished"
    assert project.query("SELECT count(*) FROM faultapp_note") == [(0,)]
    stop_all(project)


def test_a_stopped_supervisor_with_all_its_processes_loses_its_jobs_and_comes_back(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=2, **SHORT_LEASE), extra=SPARING)
    first, second = project.start(), project.start()
    for supervisor in (first, second):
        supervisor.wait_ready(1)
    ids = project.enqueue("work_again", *[[1.5]] * 4)
    for job_id in ids:
        project.wait_started(job_id)
    project.enqueue("work", *durations(100, 0.02))
    family = first.children()
    freeze(project, first, first.pid, *family)
    for pid in [*family, first.pid]:
        wait_pruned(project, pid)
    thaw(first, first.pid, *family)
    project.wait_done(40)
    wait_for(lambda: registered(project, first.pid), 10, "its registration")
    first.wait_ready(1, seconds=10)
    wait_gone(family, 20)
    project.enqueue("work", *durations(40, 0.01))
    project.wait_done(20)
    stop_all(project)
    assert verdict(project) == []


@pytest.mark.thorough
def test_a_stopped_worker_is_replaced_though_another_supervisor_has_pruned_it(
    make_project: MakeProject,
) -> None:
    patient = make_project(queue(processes=1, **SHORT_LEASE | {"process_alive_threshold": 60}))
    strict = make_project(
        queue(processes=1, **SHORT_LEASE),
        extra=f"DATABASES['default']['NAME'] = {str(patient.database)!r}\n{SOON}",
        template=None,
    )
    first, second = patient.start(), strict.start()
    [stopped] = first.wait_ready(1)
    wait_for(lambda: patient.count("processes") == 6, 20, "all processes")
    freeze(patient, first, stopped)
    wait_pruned(patient, stopped)
    wait_for(lambda: set(first.workers()) - {stopped}, 15, "a replacement")
    thaw(first, stopped)
    wait_gone([stopped], 20)
    assert first.stop() == second.stop() == 0


def test_a_worker_that_is_told_to_end_finishes_its_job_and_is_replaced(
    make_project: MakeProject,
) -> None:
    # One thread: had it another one, a claim that was under way could start the later job.
    project = make_project(queue(processes=1, threads=1))
    supervisor = project.start()
    [told] = supervisor.wait_ready(1)
    [job] = project.enqueue("work", [1.0])
    project.wait_started(job)
    supervisor.send(signal.SIGTERM, told)
    [later] = project.enqueue("work", [0.0])
    project.wait_done(15)
    assert not proc.alive(told) or registered(project, told)
    wait_gone([told], 5)
    [replacement] = supervisor.wait_ready(1)
    assert replacement != told
    assert project.attempts_at(later)[0].pid == replacement
    stop_all(project)
    assert verdict(project) == []


def test_an_idle_worker_that_is_killed_is_replaced_and_costs_nothing(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1))
    supervisor = project.start()
    [idle] = supervisor.wait_ready(1)
    supervisor.send(signal.SIGKILL, idle)
    began = time.monotonic()
    [replacement] = wait_for(lambda: [pid for pid in supervisor.workers() if pid != idle], 10)
    print(f"\nreplaced after {time.monotonic() - began:.2f} s")
    [job] = project.enqueue("work", [0.0])
    project.wait_done(10)
    assert project.attempts_at(job)[0].pid == replacement
    assert not registered(project, idle)
    stop_all(project)
    assert verdict(project) == []


def test_a_worker_that_quits_gives_its_running_job_back(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1))
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [1.5])
    quitting = busy_worker(project, supervisor)
    supervisor.send(signal.SIGQUIT, quitting)
    wait_gone([quitting], 2)
    second = project.wait_started(job, times=2, seconds=10)
    assert second.pid != quitting
    project.wait_done(15)
    assert project.state_of(job) == "finished"
    stop_all(project)
