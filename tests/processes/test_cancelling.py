"""Jobs that are cancelled while a worker runs them: real processes, on every database."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from . import proc
from .conftest import EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import freeze, queue
from .waiting import wait_for

CANCELLED = "steady_queue_core.errors.TaskCancelled"
#: Seconds that a job would run, and in which one that is cancelled has to have ended.
LONG, SOON = 60.0, 1.0


def patient(threads: int, task_modules: Sequence[str] = ()) -> dict[str, Any]:
    """Return a ``STEADY_QUEUE`` with one worker that knows the tasks that can be interrupted."""
    modules = ["tests.faultapp.patient", *task_modules]
    return queue(processes=1, threads=threads, task_modules=modules)


def cancel(project: Project, *jobs: int) -> list[int]:
    """Cancel jobs that wait or run; return the instants, in ns."""
    answers = project.client.call("cancel", ids=jobs)
    assert [answer for _, answer in answers] == [True] * len(jobs)
    return [began for began, _ in answers]


def traceback_of(project: Project, job: int) -> str:
    [(text,)] = project.query(f"SELECT errors FROM steady_queue_jobs WHERE id = {job}")
    return str(json.loads(text)[-1][1])


def errors_of(project: Project, job: int) -> list[str]:
    [(text,)] = project.query(f"SELECT errors FROM steady_queue_jobs WHERE id = {job}")
    return [path for path, *_ in json.loads(text)]


def wait_cancelled(project: Project, *jobs: int) -> None:
    for job in jobs:
        wait_for(lambda job=job: project.state_of(job) == "failed", 5, f"the end of job {job}")
        assert errors_of(project, job) == [CANCELLED]


@pytest.mark.parametrize("where", EVERYWHERE)
def test_running_jobs_end_within_a_second(where: dict[str, str], make_project: MakeProject) -> None:
    project = make_project(patient(threads=2), **where)
    project.start().wait_ready(1)
    jobs = project.enqueue("patient:stay", [LONG], [LONG])
    jobs += project.enqueue("patient:astay", [LONG])
    for job in jobs:
        project.wait_started(job)
    began = cancel(project, *jobs)
    wait_cancelled(project, *jobs)
    for job, instant in zip(jobs, began, strict=True):
        [attempt] = project.attempts_at(job)
        assert attempt.ended_at is not None
        assert (attempt.ended_at - instant) / 1e9 < SOON
        assert "TaskCancelled: The job was cancelled while it ran." in traceback_of(project, job)
    # The threads and the loop run others, which nothing interrupts.
    others = project.enqueue("patient:stay", [0.3], [0.3], [0.3], [0.3])
    others += project.enqueue("patient:astay", [0.3])
    project.wait_done(20)
    assert {project.state_of(job) for job in others} == {"finished"}


def test_task_processes_of_cancelled_jobs_are_killed(make_project: MakeProject) -> None:
    settings = patient(threads=2)
    settings["workers"][0]["executor"] = "processes"
    project = make_project(settings)
    project.start().wait_ready(1)
    jobs = project.enqueue("work", [LONG])  # In one call of C, which no thread would give up.
    jobs += project.enqueue("patient:astay", [LONG])
    [waiting] = project.enqueue("patient:stay", [LONG])
    for job in jobs:
        project.wait_started(job)
    cancel(project, *jobs, waiting)
    wait_cancelled(project, *jobs, waiting)
    assert project.attempts_at(waiting) == []
    for job in jobs:
        [attempt] = project.attempts_at(job)
        assert attempt.ended_at is None
        wait_for(lambda pid=attempt.pid: not proc.alive(pid), 5, f"the end of {attempt.pid}")
    others = project.enqueue("patient:stay", [0.3], [0.3], [0.3], [0.3])
    project.wait_done(20)
    assert {project.state_of(job) for job in others} == {"finished"}
    assert len({attempt.pid for job in others for attempt in project.attempts_at(job)}) == 2


def test_a_job_that_its_worker_holds_but_has_not_started_never_starts(
    make_project: MakeProject,
) -> None:
    project = make_project(patient(threads=1))
    waiting = project.enqueue("patient:stay", [0.6], [LONG], [LONG])
    supervisor = project.start()
    supervisor.wait_ready(1)
    project.wait_started(waiting[0])
    cancel(project, *waiting[1:])
    project.wait_done(20)
    assert project.state_of(waiting[0]) == "finished"
    for job in waiting[1:]:
        assert errors_of(project, job) == [CANCELLED]
        assert project.attempts_at(job) == []


# On SQLite, a task's transaction keeps all others from writing, and so from cancelling it.
@pytest.mark.parametrize("where", EVERYWHERE[1:])
def test_a_task_in_the_middle_of_a_transaction_leaves_no_trace(
    where: dict[str, str], make_project: MakeProject
) -> None:
    project = make_project(patient(threads=1), **where)
    project.start().wait_ready(1)
    for _ in range(5):
        [job] = project.enqueue("patient:query", [LONG])
        project.wait_started(job)
        cancel(project, job)
        wait_for(lambda job=job: project.state_of(job) == "failed", 5, f"the end of {job}")
        assert errors_of(project, job) == [CANCELLED]
        [after] = project.enqueue("patient:query", [0.01])
        wait_for(lambda after=after: project.state_of(after) == "finished", 5, f"job {after}")


def test_what_a_task_makes_of_it_is_its_own_affair(make_project: MakeProject) -> None:
    project = make_project(patient(threads=2))
    project.start().wait_ready(1)
    [obeys] = project.enqueue("patient:obey", [LONG])
    [raises] = project.enqueue("patient:obstinate", [LONG])
    for job in (obeys, raises):
        project.wait_started(job)
    cancel(project, obeys, raises)
    wait_cancelled(project, raises)
    wait_for(lambda: project.state_of(obeys) == "finished", 5, "the end of a task that returns")
    [(value,)] = project.query(f"SELECT return_value FROM steady_queue_jobs WHERE id = {obeys}")
    assert json.loads(value) == [False, True]


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_task_that_does_not_end_is_given_up_with_its_worker(
    where: dict[str, str], make_project: MakeProject
) -> None:
    project = make_project(patient(threads=2, task_modules=["tests.faultapp.hanging"]), **where)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [job] = project.enqueue("hanging:sleep", [], periods={"timeout_grace": 1.0})
    [beside] = project.enqueue("patient:stay", [4.0])
    for each in (job, beside):
        project.wait_started(each)
    cancel(project, job)
    wait_for(lambda: project.state_of(job) == "failed", 20, f"the end of job {job}")
    assert errors_of(project, job) == [CANCELLED]
    assert "did not end in the next 1 s: its worker was replaced." in traceback_of(project, job)
    project.wait_done(20)
    assert project.state_of(beside) == "finished"
    assert len(project.attempts_at(beside)) == 1
    assert not proc.alive(worker)


def test_the_permit_of_an_interrupted_job_passes_on(make_project: MakeProject) -> None:
    project = make_project(patient(threads=2))
    project.start().wait_ready(1)
    first, second, third = project.enqueue("patient:stay_alone", [LONG], [0.0], [0.0])
    project.wait_started(first)
    cancel(project, first)
    project.wait_done(20)
    assert [project.state_of(job) for job in (second, third)] == ["finished"] * 2
    assert errors_of(project, first) == [CANCELLED]
    assert project.count("permits") == 0


def test_cancelled_jobs_whose_worker_is_killed_do_not_run_again(make_project: MakeProject) -> None:
    project = make_project(patient(threads=1))
    project.mutant = "no deadlines in chains"  # The second job stays with the worker for any time.
    running, held = project.enqueue("patient:stay", [LONG], [LONG])
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    project.wait_started(running)
    wait_for(lambda: project.state_of(held) == "claimed", 5, "the claim of a second job")
    freeze(project, supervisor, worker)  # It does not hear of it.
    cancel(project, running, held)
    assert project.state_of(held) == "claimed"
    supervisor.send(signal.SIGKILL, worker)
    project.wait_done(20)
    assert [project.state_of(job) for job in (running, held)] == ["failed", "failed"]
    assert [len(project.attempts_at(job)) for job in (running, held)] == [1, 0]
    # The other one is given back first, and whoever claims it reads the request.
    assert errors_of(project, held) == [CANCELLED]


def test_workers_ask_for_requests_only_while_they_run_long_jobs(make_project: MakeProject) -> None:
    project = make_project(
        patient(threads=2, task_modules=["counting"]), files={"counting.py": COUNTING}
    )
    project.start().wait_ready(1)
    asked = project.folder / "asked"
    for _ in range(40):
        [job] = project.enqueue("work", [0.001])
        wait_for(lambda job=job: project.state_of(job) == "finished", 20, f"job {job}")
    project.enqueue("work", *[[0.0]] * 300)
    project.wait_done(20)
    assert not asked.exists()
    [job] = project.enqueue("patient:stay", [LONG])
    project.wait_started(job)
    cancel(project, job)
    wait_cancelled(project, job)
    assert asked.exists()


#: Has each question that a worker asks leave a line in a file.
COUNTING = """
from django.conf import settings
from steady_queue_core.processes.worker import settlement

def _counted(self, ask=settlement.Settlement.cancelled):
    with open(settings.BASE_DIR / "asked", "a") as file:
        file.write("asked\\n")
    return ask(self)

settlement.Settlement.cancelled = _counted
"""
