"""Without one of its guards the product breaks its promises, and these tests notice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from . import proc
from .conftest import MakeProject
from .harness import Project
from .scenarios import (
    SHORT_LEASE,
    SOON,
    claimed_by,
    freeze,
    queue,
    stop_all,
    thaw,
    verdict,
    wait_pruned,
    work_with_a_backlog,
)
from .waiting import wait_for


def kill_a_worker_with_a_backlog(project: Project) -> list[str]:
    """Kill a worker that runs one job and has claimed others; return what the checker says."""
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    work_with_a_backlog(project, worker)
    supervisor.send(signal.SIGKILL, worker)
    project.wait_done(30)
    stop_all(project)
    return verdict(project, threads=1)


def test_a_worker_killed_with_a_backlog_costs_one_job(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1))
    assert kill_a_worker_with_a_backlog(project) == []
    failed = [row for row in project.snapshot().jobs.values() if row.states == ("failed",)]
    assert len(failed) <= 1


@pytest.mark.thorough
def test_without_start_marks_interrupted_jobs_run_more_often_than_they_may(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1))
    project.mutant = "no start marks"
    assert "2 times of 1 allowed" in "; ".join(kill_a_worker_with_a_backlog(project))


@pytest.mark.thorough
def test_if_every_claim_counted_as_started_untouched_jobs_would_fail(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1))
    project.mutant = "every claim started"
    assert "had never started" in "; ".join(kill_a_worker_with_a_backlog(project))


def resume_a_worker_whose_job_runs_elsewhere(project: Project) -> list[str]:
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work_again", [1.2])
    stopped = project.wait_started(job).pid
    freeze(project, supervisor, stopped)
    wait_pruned(project, stopped)
    project.wait_started(job, times=2)
    thaw(supervisor, stopped)
    project.wait_done(30)
    wait_for(lambda: all(each.ended_at for each in project.attempts_at(job)), 20, "both ends")
    stop_all(project)
    return verdict(project)


@pytest.mark.thorough
def test_without_the_token_check_a_lost_claim_decides_the_outcome(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1, **SHORT_LEASE), extra=SOON)
    project.mutant = "no token check"
    complaints = resume_a_worker_whose_job_runs_elsewhere(project)
    assert "with the result of the attempt " in "; ".join(complaints)


def resume_a_worker_with_a_backlog(project: Project) -> list[str]:
    supervisor = project.start()
    [stopped] = supervisor.wait_ready(1)
    work_with_a_backlog(project, stopped)
    freeze(project, supervisor, stopped)
    wait_pruned(project, stopped)
    project.wait_done(20)
    thaw(supervisor, stopped)
    wait_for(lambda: not proc.alive(stopped), 20, "its end")
    stop_all(project)
    return verdict(project)


def test_a_worker_that_was_asleep_starts_nothing_that_it_had_claimed(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1, **SHORT_LEASE), extra=SOON)
    assert resume_a_worker_with_a_backlog(project) == []


def resume_a_worker_with_waiting_coroutines(project: Project) -> list[str]:
    supervisor = project.start()
    [stopped] = supervisor.wait_ready(1)
    [blocker] = project.enqueue("block_loop", [1.5])
    project.wait_started(blocker)
    project.enqueue("awork", *[[0.0]] * 40)
    wait_for(lambda: claimed_by(project, stopped) == 41, 10, "waiting coroutines")
    freeze(project, supervisor, stopped)
    assert [attempt.ended_at for attempt in project.attempts()] == [None]
    wait_pruned(project, stopped)
    project.wait_done(20)
    thaw(supervisor, stopped)
    wait_for(lambda: not proc.alive(stopped), 20, "its end")
    stop_all(project)
    assert project.attempts_at(blocker)[0].ended_at is not None
    return verdict(project)


def test_coroutines_that_waited_in_a_stopped_worker_do_not_start_when_it_resumes(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1, **SHORT_LEASE), extra=SOON)
    project.mutant = "no giving back"
    assert resume_a_worker_with_waiting_coroutines(project) == []


@pytest.mark.thorough
def test_without_the_lease_check_a_worker_that_was_asleep_runs_jobs_again(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1, **SHORT_LEASE), extra=SOON)
    project.mutant = "no giving back,no lease check"
    complaints = resume_a_worker_with_waiting_coroutines(project)
    assert "started with token " in "; ".join(complaints)


@pytest.mark.thorough
def test_without_the_parent_watch_processes_outlive_a_killed_supervisor(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1))
    project.mutant = "no parent watch"
    supervisor = project.start()
    supervisor.wait_ready(1)
    children = supervisor.children()
    supervisor.send(signal.SIGKILL)
    supervisor.wait_exit()
    try:
        wait_for(lambda: not any(map(proc.alive, children)), 4.5, "the end of the children")
    except AssertionError:
        return
    raise AssertionError("the children ended though nothing told them to")


def test_each_mutant_finds_what_it_takes_away() -> None:
    """What has moved would not be taken away, and the tests that miss it would be blamed."""
    code = (
        "import django; django.setup()\n"
        "from tests.faultapp.mutants import MUTANTS\n"
        "for install in MUTANTS.values(): install()"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-c", code]
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 0, found.stderr
