"""What tasks leave behind in their thread or process is no concern of those that follow."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from . import proc
from .conftest import EACH_SERVER, MODES, MakeProject
from .harness import Project
from .scenarios import queue
from .waiting import wait_for

EVERYWHERE = [pytest.param("default", id="sqlite"), *EACH_SERVER]
KEPT = """
DATABASES["default"]["CONN_MAX_AGE"] = None
"""


def rude_project(make_project: MakeProject, on: str, **options: Any) -> Project:
    """Return a project whose worker has one thread, and keeps its connections unasked."""
    where = {} if on == "default" else {"on": on}
    settings = queue(processes=1, threads=1, task_modules=["tests.faultapp.rude"], **options)
    return make_project(settings, extra=KEPT, **where)


def notes(project: Project) -> set[str]:
    return {text for (text,) in project.query("SELECT text FROM faultapp_note")}


def failures(project: Project) -> list[tuple[Any, ...]]:
    return project.query("SELECT job_id, exception_class FROM steady_queue_failed_executions")


@pytest.mark.parametrize("on", EVERYWHERE)
def test_what_a_task_leaves_of_its_connection_takes_no_other_job_along(
    make_project: MakeProject, on: str
) -> None:
    project = rude_project(make_project, on)
    supervisor = project.start()
    supervisor.wait_ready()
    written, left = set(), []
    for rude, note in [("begin", "note"), ("abegin", "anote"), ("close", "note")]:
        [job] = project.enqueue(f"rude:{rude}")
        project.wait_done()
        texts = [f"{rude} {number}" for number in range(5)]
        project.enqueue(f"rude:{note}", *[[text] for text in texts])
        project.wait_done()
        written |= set(texts)
        left.append(f"Task tests.faultapp.rude.{rude} #{job} left a ")
    # The worker lives on: what is to be seen now was committed, not merely written.
    assert failures(project) == []
    assert notes(project) == written
    assert supervisor.stop() == 0
    assert [supervisor.errors().count(line) for line in left] == [1, 1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_what_a_task_leaves_in_threads_of_its_own_takes_no_other_job_along(
    make_project: MakeProject, mode: str
) -> None:
    project = rude_project(make_project, "default", supervisor_mode=mode)
    supervisor = project.start()
    written = set()
    for prefix in ("", "a"):
        project.enqueue(f"rude:{prefix}begin_in_thread")
        project.wait_done()
        texts = [f"{prefix} {number}" for number in range(5)]
        project.enqueue(f"rude:{prefix}note_in_thread", *[[text] for text in texts])
        project.wait_done()
        written |= set(texts)
    assert failures(project) == []
    assert notes(project) == written
    assert supervisor.stop() == 0
    assert supervisor.errors().count("left a transaction open") == 2


def test_coroutines_that_end_leave_the_transaction_of_one_that_runs_alone(
    make_project: MakeProject,
) -> None:
    project = rude_project(make_project, "default")
    supervisor = project.start()
    supervisor.wait_ready()
    slow = project.enqueue("rude:in_own_transaction", ["kept", 1.5])
    quick = project.enqueue("awork", *[[0.01]] * 5)
    project.wait_done()
    assert {project.state_of(job_id) for job_id in [*slow, *quick]} == {"finished"}
    assert notes(project) == {"kept"}
    assert supervisor.stop() == 0
    assert "left a transaction open" not in supervisor.errors()


@pytest.mark.parametrize("fresh", [False, True])
def test_a_worker_can_give_each_task_connections_of_its_own(
    make_project: MakeProject, fresh: bool
) -> None:
    worker = {"threads": 1, "coroutines": 1, "fresh_connections": fresh}
    project = rude_project(make_project, "default", workers=[worker])
    supervisor = project.start()
    supervisor.wait_ready()
    for kind in ("", "a"):
        # A temporary table is nothing that a driver tells of.
        project.enqueue(f"rude:{kind}session", ["CREATE TEMPORARY TABLE mine (id INTEGER)"])
        project.wait_done()
        [other] = project.enqueue(f"rude:{kind}session", ["SELECT * FROM mine"])
        project.wait_done()
        assert project.state_of(other) == ("failed" if fresh else "finished")
    assert supervisor.stop() == 0


def value_of(project: Project, job_id: int) -> Any:
    [(text,)] = project.query("SELECT return_value FROM steady_queue_jobs WHERE id = ?", job_id)
    return json.loads(text) if text else text


@pytest.mark.parametrize("mode", MODES)
def test_processes_that_a_task_starts_end_when_they_are_told_to(
    make_project: MakeProject, mode: str
) -> None:
    project = rude_project(make_project, "default", supervisor_mode=mode)
    supervisor = project.start()
    [job] = project.enqueue("rude:terminate")
    project.wait_done(45)
    assert value_of(project, job) == [-signal.SIGTERM, -signal.SIGTERM]
    [job] = project.enqueue("rude:leave_daemon")
    project.wait_done()
    assert supervisor.stop() == 0
    wait_for(lambda: not proc.in_session(supervisor.pid), 10, "the end of all processes")


@pytest.mark.parametrize("executor", ["threads", "processes"])
@pytest.mark.parametrize("how", ["stopped", "recycled", "quit"])
def test_what_a_process_has_left_for_its_exit_is_done(
    make_project: MakeProject, executor: str, how: str
) -> None:
    settings = queue(processes=1, threads=1, task_modules=["tests.faultapp.rude"])
    recycling = {"recycle_after": 1} if how == "recycled" else {}
    settings["workers"][0] |= {"executor": executor, **recycling}
    project = make_project(settings)
    supervisor = project.start()
    supervisor.wait_ready()
    [job] = project.enqueue("rude:use_shared_pool")
    project.wait_done()
    [*pool] = value_of(project, job)
    if how == "recycled":
        wait_for(lambda: not any(map(proc.alive, pool)), 10, "the end of the pool")
    assert supervisor.stop(signal.SIGQUIT if how == "quit" else signal.SIGTERM) == 0
    said = supervisor.output()
    assert said.count("said by a task") == 1
    if how != "quit":
        assert said.count("said at the exit") == 1
        assert not any(map(proc.alive, pool))


@pytest.mark.parametrize("on", EVERYWHERE)
def test_the_copy_of_a_worker_that_a_task_forks_ends_with_the_task(
    make_project: MakeProject, on: str
) -> None:
    project = rude_project(make_project, on)
    supervisor = project.start()
    supervisor.wait_ready()
    copies = []
    for rude in ("fork", "afork"):
        [job] = project.enqueue(f"rude:{rude}")
        project.wait_done()
        copies.append(value_of(project, job))
    jobs = [*project.enqueue("rude:fork_and_raise", [True], [False])]
    project.enqueue("rude:note", ["after"])
    project.wait_done()
    assert failures(project) == []
    assert [value_of(project, job) for job in jobs] == [7, 1]
    assert notes(project) == {"after"}
    # They are not reaped: it is their parent's to do that, and it lives.
    wait_for(lambda: not any(map(proc.alive, copies)), 10, "the end of the copies")
    assert supervisor.stop() == 0
    assert "RuntimeError: raised in the copy" in supervisor.errors()
    assert "left a" not in supervisor.errors()
    assert project.count("claimed_executions") == 0


@pytest.mark.parametrize("mode", MODES)
def test_coroutines_that_another_cancels_before_they_begin_run_all_the_same(
    make_project: MakeProject, mode: str
) -> None:
    project = rude_project(make_project, "default", supervisor_mode=mode)
    first = project.enqueue("awork", *[[0.0]] * 3)
    project.enqueue("rude:cancel_everybody")
    last = project.enqueue("awork", *[[0.0]] * 18)
    supervisor = project.start()
    project.wait_done(20)
    # Those that had begun are cancelled in the middle, as the task wants it.
    assert {project.state_of(job_id) for job_id in last} == {"finished"}
    assert {len(project.attempts_at(job_id)) for job_id in [*first, *last]} == {1}
    assert supervisor.stop() == 0
    assert project.count("claimed_executions") == 0
    assert "never awaited" not in supervisor.errors()


def test_a_worker_that_can_make_no_event_loop_is_replaced_and_takes_no_job_along(
    make_project: MakeProject,
) -> None:
    project = rude_project(make_project, "default")
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    project.enqueue("rude:refuse_loops")
    project.wait_done()
    [running] = project.enqueue("work", [1.0])
    project.wait_started(running)
    [coroutine] = project.enqueue("awork", [0.0])
    project.wait_done()
    assert failures(project) == []
    assert [len(project.attempts_at(job_id)) for job_id in (running, coroutine)] == [1, 1]
    assert supervisor.workers() != [worker]
    assert supervisor.stop() == 0
    assert "no event loop can be started: [Errno 24] Too many open files" in supervisor.errors()


HOOKS = """
from django.db import connection
from steady_queue_core.hooks import on_worker_start, on_worker_stop

@on_worker_start
@on_worker_stop
def begin(process):
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
"""


@pytest.mark.parametrize("on", EVERYWHERE)
def test_a_transaction_that_a_hook_leaves_open_takes_no_outcome_along(
    make_project: MakeProject, on: str
) -> None:
    where = {} if on == "default" else {"on": on}
    settings = queue(processes=1, threads=1, shutdown_timeout=20, task_modules=["hooked"])
    project = make_project(settings, files={"hooked.py": HOOKS}, **where)
    [first] = project.enqueue("work", [0.0])
    supervisor = project.start()
    wait_for(lambda: project.state_of(first) == "finished", 30, "the end of the first")
    [last] = project.enqueue("work", [1.0])
    project.wait_started(last)
    assert supervisor.stop() == 0
    assert project.state_of(last) == "finished"
    assert supervisor.errors().count("A signal receiver left a transaction open") == 2
