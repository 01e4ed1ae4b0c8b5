"""What is seen of a queue from outside: its SQL in the log, the titles of its processes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from steady_queue_core.models import Process
from steady_queue_core.processes.base.database import QueueDatabase

from . import proc
from .conftest import EACH_SERVER, MakeProject
from .harness import Project
from .scenarios import queue
from .waiting import wait_for

SQL = """
    DEBUG = True
    LOGGING["handlers"]["sql"] = {"class": "logging.FileHandler", "filename": BASE_DIR / "sql.log"}
    LOGGING["loggers"]["django.db.backends"] = {"handlers": ["sql"], "level": "DEBUG"}
"""


@pytest.mark.django_db
@pytest.mark.parametrize("silent", [True, False])
def test_statements_of_the_queue_are_kept_out_of_the_log_and_no_others(
    silent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "django.db.backends")
    database = QueueDatabase("default", quiet=silent)
    with CaptureQueriesContext(connection):
        Process.objects.exists()
        database.run(lambda connection, dialect: Process.objects.filter(name="polled").exists())
        Process.objects.filter(name="after").exists()
    logged = [each.getMessage() for each in caplog.records if each.name == "django.db.backends"]
    assert len(logged) == (2 if silent else 3)
    assert any("polled" in each for each in logged) is not silent
    assert "after" in logged[-1]


def statements(project: Project) -> str:
    return (project.folder / "sql.log").read_text()


@pytest.mark.parametrize("on", [pytest.param("default", id="sqlite"), *EACH_SERVER])
def test_a_silent_queue_logs_the_statements_of_tasks_alone(
    make_project: MakeProject, on: str
) -> None:
    where = {} if on == "default" else {"on": on}
    project = make_project(queue(processes=1, process_heartbeat_interval=0.2), extra=SQL, **where)
    supervisor = project.start("--only", "work")
    supervisor.wait_ready(1)
    # Before it are the statements of the migration, and of the system checks.
    before = len(statements(project))
    project.enqueue("note")
    project.wait_done()
    assert supervisor.stop() == 0
    text = statements(project)[before:]
    assert "faultapp_note" in text
    # The client's enqueue is in the log as well, but nobody else's statements.
    for table in ("processes", "claimed_executions"):
        assert f"steady_queue_{table}" not in text, table


def test_a_queue_that_is_not_silent_logs_its_statements(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, silence_polling=False), extra=SQL)
    supervisor = project.start()
    supervisor.wait_ready(1)
    wait_for(lambda: "steady_queue_processes" in statements(project), 20, "a statement")
    assert supervisor.stop() == 0


def title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()


def titles(pids: list[int]) -> set[str]:
    return {title(pid) for pid in pids if proc.alive(pid)}


@pytest.mark.fresh
def test_processes_have_titles(make_project: MakeProject) -> None:
    project = make_project(
        {"workers": [{"queues": "mail,b*", "processes": 1}], "dispatchers": [{}]}
    )
    supervisor = project.start()
    supervisor.wait_ready(1)
    expected = {"steady-queue dispatcher", "steady-queue worker: queues mail,b*, 0 running"}
    wait_for(lambda: titles(supervisor.children()) == expected, 10, "titles")
    assert title(supervisor.pid) == "steady-queue supervisor: 2 processes"
    [job] = project.enqueue("work", [3.0], queue="mail")
    project.wait_started(job)
    busy = "steady-queue worker: queues mail,b*, 1 running"
    wait_for(lambda: busy in titles(supervisor.children()), 5, "the title of a busy worker")


def test_without_setproctitle_there_are_none(make_project: MakeProject) -> None:
    extra = """
        import sys

        sys.modules["setproctitle"] = None
    """
    project = make_project(queue(processes=1), extra=extra)
    supervisor = project.start()
    supervisor.wait_ready(1)
    assert {"steady-queue" in each for each in titles(supervisor.children())} == {False}
    assert supervisor.stop() == 0
