"""Errors of the queue itself, and failures of jobs, reach those who want to know of them."""

from __future__ import annotations

import signal

import pytest

from .conftest import MODES, MakeProject
from .harness import Project
from .scenarios import queue, refusal, stop_all
from .waiting import wait_for

TELLS = """
    import os

    from steady_queue_core import hooks

    def tell(*words):
        with open(BASE_DIR / "told.log", "a") as file:
            file.write(" ".join(map(str, words)) + chr(10))

    @hooks.on_internal_error
    def fails_first(error):
        raise RuntimeError("told to fail")

    @hooks.on_internal_error
    def internal(error):
        own = error.pid == os.getpid()
        name = str(error.process_name).partition("-")[0]
        tell("internal", error.event, name, type(error.error).__name__, own, error.message)

    @hooks.on_worker_start
    def break_worker(process):
        from steady_queue_core.processes.worker.worker import Worker
        break_once(Worker, "_iterate")

    @hooks.on_dispatcher_start
    def break_dispatcher(process):
        from steady_queue_core.processes.dispatcher.dispatcher import Dispatcher
        break_once(Dispatcher, "_dispatch")

    def break_once(kind, name):
        flag = BASE_DIR / f"broken-{name}"
        if flag.exists():
            return
        work = getattr(kind, name)

        def fail(self, *args, **kwargs):
            setattr(kind, name, work)
            flag.touch()
            raise LookupError(name)

        setattr(kind, name, fail)
"""

REPORTER = """
from pathlib import Path


def report(error, task_result):
    with open(Path(__file__).with_name("told.log"), "a") as file:
        words = [task_result.id, type(error).__name__, task_result.status]
        file.write(" ".join(map(str, words)) + chr(10))
    if type(error).__name__ == "TypeError":
        raise SystemExit("the reporter fails")
"""
REPORTS = 'TASKS["default"]["OPTIONS"] = {{"error_reporter": "{}"}}\n'


def told(project: Project) -> list[str]:
    path = project.folder / "told.log"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("mode", MODES)
def test_the_hook_is_told_of_errors_of_the_queues_own_processes(
    make_project: MakeProject, mode: str
) -> None:
    project = make_project(queue(processes=1, supervisor_mode=mode), extra=TELLS)
    supervisor = project.start()
    wait_for(lambda: len(told(project)) == 2, 20, "both errors")
    project.enqueue("work")
    project.wait_done(20)  # The worker was replaced, and the dispatcher goes on.
    assert supervisor.stop() == 0
    said = sorted(told(project))
    assert len(said) == 2
    assert said[0].startswith("internal process.failed worker LookupError True worker-")
    assert said[0].endswith(" failed")
    assert said[1].startswith(
        "internal process.round_failed dispatcher LookupError True A round of dispatcher-"
    )
    assert "LookupError: _iterate" in supervisor.errors()
    assert supervisor.errors().count("The receiver fails_first of a signal failed") == 2


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_the_reporter_is_told_once_of_each_job_that_fails_for_good(
    make_project: MakeProject, executor: str
) -> None:
    settings = queue(processes=1, threads=1)
    settings["workers"][0]["executor"] = executor
    project = make_project(
        settings,
        extra=REPORTS.format("reporter.report"),
        files={"reporter.py": REPORTER},
    )
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [fails] = project.enqueue("fail_at_length", [10])
    [recovers] = project.enqueue("flaky", [2])
    [gives_up] = project.enqueue("flaky", [3])
    project.wait_done(30)
    [lost] = project.enqueue("work", [60])
    project.wait_started(lost)
    supervisor.send(signal.SIGKILL, worker)
    wait_for(lambda: any("ProcessExitError" in line for line in told(project)), 20, "the report")
    stop_all(project)
    said = told(project)
    assert len(said) == 3
    assert said[0].startswith(f"{fails} ")
    error = "RuntimeError" if executor == "threads" else "ReportedTaskError"
    assert said[1] == f"{gives_up} {error} FAILED"
    assert said[2] == f"{lost} ProcessExitError FAILED"
    assert project.state_of(recovers) == "finished"


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_job_that_was_cancelled_is_no_failure_to_report(
    make_project: MakeProject, executor: str
) -> None:
    settings = queue(processes=1, threads=1, task_modules=["tests.faultapp.patient"])
    settings["workers"][0]["executor"] = executor
    project = make_project(
        settings, extra=REPORTS.format("reporter.report"), files={"reporter.py": REPORTER}
    )
    project.start().wait_ready(1)
    [running] = project.enqueue("patient:stay", [60.0])
    project.wait_started(running)
    project.client.call("cancel", ids=[running])
    wait_for(lambda: project.state_of(running) == "failed", 10, "the end of the job")
    [fails] = project.enqueue("fail_at_length", [10])
    wait_for(lambda: told(project), 20, "the report")
    stop_all(project)
    assert [line.partition(" ")[0] for line in told(project)] == [str(fails)]


def test_a_reporter_that_fails_is_logged_and_harms_nobody(make_project: MakeProject) -> None:
    reporter = REPORTER.replace('"TypeError"', '"RuntimeError"')
    project = make_project(
        queue(processes=1),
        extra=REPORTS.format("reporter.report"),
        files={"reporter.py": reporter},
    )
    supervisor = project.start()
    [job] = project.enqueue("flaky", [3])
    project.wait_done(20)
    [after] = project.enqueue("work")
    project.wait_done(20)
    assert supervisor.stop() == 0
    assert project.state_of(after) == "finished"
    assert told(project) == [f"{job} RuntimeError FAILED"]
    assert f"The error reporter failed for task {job}" in supervisor.errors()
    assert "SystemExit: the reporter fails" in supervisor.errors()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("reporter.missing", "'reporter.missing' cannot be imported"),
        ("pathlib.Path", "'pathlib.Path' is not a function of an exception and a task result"),
        ("asyncio.sleep", "'asyncio.sleep' is not a function of an exception and a task result"),
        ("report", "expected the dotted path of a function, or None, got str 'report'"),
    ],
)
def test_a_queue_whose_reporter_is_none_does_not_start(
    make_project: MakeProject, path: str, problem: str
) -> None:
    message = refusal(make_project(queue(), extra=REPORTS.format(path)))
    assert f"TASKS['default']['OPTIONS']['error_reporter']: {problem}" in message
