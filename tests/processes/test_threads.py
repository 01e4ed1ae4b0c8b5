"""Workers, dispatchers and the scheduler as threads of one process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from typing import Any

import pytest

from . import proc
from .conftest import EACH_SERVER, MakeProject
from .harness import Project, Supervisor
from .scenarios import SHORT_LEASE, queue, refusal, verdict
from .waiting import wait_for

EVERYWHERE = [pytest.param("default", id="sqlite"), *EACH_SERVER]


def in_threads(**options: Any) -> dict[str, Any]:
    """Return a ``STEADY_QUEUE`` of one worker, which is a thread."""
    return queue(**{"threads": 2, "processes": 1, "supervisor_mode": "async", **options})


def threads_of(supervisor: Supervisor) -> int:
    return len(os.listdir(f"/proc/{supervisor.pid}/task"))


def error_of(project: Project, job_id: int) -> str:
    [(found,)] = project.query(
        "SELECT exception_class FROM steady_queue_failed_executions WHERE job_id = ?", job_id
    )
    return str(found)


@pytest.mark.parametrize("on", EVERYWHERE)
def test_jobs_run_a_dead_worker_is_replaced_and_a_stop_is_graceful(
    make_project: MakeProject, on: str
) -> None:
    where = {} if on == "default" else {"on": on}
    project = make_project(in_threads(shutdown_timeout=10), **where)
    supervisor = project.start()
    ran = [*project.enqueue("work", *[[0.01]] * 20), *project.enqueue("awork", *[[0.01]] * 20)]
    ran += project.enqueue("work", [0.0], delay=0.5)
    project.wait_done()
    [killer] = project.enqueue("kill_own_worker", [1.5])
    project.wait_done(30)
    assert error_of(project, killer) == "steady_queue_core.errors.ThreadTerminatedError"
    broken_off = project.attempts_at(killer)[0]
    [slow] = project.enqueue("work", [1.0])
    project.wait_started(slow)
    assert supervisor.children() == []
    # What might have been run again elsewhere did not go on.
    wait_for(lambda: time.monotonic_ns() > broken_off.started_at + 1.8e9, 5)
    assert project.attempts_at(killer)[0].ended_at is None
    assert supervisor.stop() == 0
    assert {project.state_of(job_id) for job_id in [*ran, slow]} == {"finished"}
    assert project.count("processes") == project.count("claimed_executions") == 0
    complaints = verdict(project, own_failures=[killer])
    assert [each for each in complaints if not each.startswith(f"job {killer} never ended")] == []


def test_jobs_that_a_dead_worker_had_not_started_run_elsewhere(make_project: MakeProject) -> None:
    project = make_project(in_threads(threads=1))
    supervisor = project.start()
    # Short ones first, so that the worker claims ahead of its thread.
    project.enqueue("work", *[[0.002]] * 60)
    [killer] = project.enqueue("kill_own_worker", [10.0])
    others = project.enqueue("work", *[[0.4]] * 6)
    project.wait_done(30)
    assert supervisor.stop() == 0
    failed = project.query("SELECT job_id FROM steady_queue_failed_executions")
    assert failed == [(killer,)]
    assert {len(project.attempts_at(job_id)) for job_id in others} == {1}


def test_what_outlasts_the_timeout_is_broken_off_and_runs_again(make_project: MakeProject) -> None:
    project = make_project(in_threads(threads=3, shutdown_timeout=0.5))
    supervisor = project.start()
    jobs = project.enqueue("spin", [60.0]) + project.enqueue("work", [60.0])
    jobs += project.enqueue("awork", [60.0])
    for job_id in jobs:
        project.wait_started(job_id)
    began = time.monotonic()
    assert supervisor.stop() == 0
    assert time.monotonic() - began < 6
    assert [project.state_of(job_id) for job_id in jobs] == ["ready"] * 3
    assert project.count("processes") == project.count("claimed_executions") == 0
    [(attempts,)] = project.query("SELECT max(attempts) FROM steady_queue_jobs")
    assert attempts == 0
    assert "Traceback" not in supervisor.errors()


def test_what_a_coroutine_has_in_another_thread_does_not_hold_up_the_end(
    make_project: MakeProject,
) -> None:
    project = make_project(in_threads(shutdown_timeout=0.5))
    supervisor = project.start()
    [job] = project.enqueue("await_thread", [30.0])
    project.wait_started(job)
    began = time.monotonic()
    assert supervisor.stop() == 0
    assert time.monotonic() - began < 6
    assert project.state_of(job) == "ready"


def test_quit_gives_running_jobs_back_at_once(make_project: MakeProject) -> None:
    project = make_project(in_threads(shutdown_timeout=60))
    supervisor = project.start()
    [job] = project.enqueue("spin", [60.0])
    project.wait_started(job)
    began = time.monotonic()
    assert supervisor.stop(signal.SIGQUIT) == 0
    assert time.monotonic() - began < 5
    assert project.state_of(job) == "ready"


def test_the_next_supervisor_recovers_what_a_killed_one_ran(make_project: MakeProject) -> None:
    project = make_project(in_threads())
    supervisor = project.start()
    [job] = project.enqueue("work_again", [2.0])
    project.wait_started(job)
    supervisor.send(signal.SIGKILL)
    supervisor.wait_exit()
    project.start()
    project.wait_done()
    assert len(project.attempts_at(job)) == 2
    assert [state for state in [project.state_of(job)] if state != "finished"] == []


def test_a_worker_that_others_declared_dead_is_replaced(make_project: MakeProject) -> None:
    project = make_project(in_threads(threads=1, shutdown_timeout=5, **SHORT_LEASE))
    supervisor = project.start()
    [slow] = project.enqueue("work", [2.0])
    project.wait_started(slow)
    with closing(sqlite3.connect(project.database, timeout=20)) as database, database:
        database.execute("DELETE FROM steady_queue_processes WHERE kind = 'worker'")
    [job] = project.enqueue("work")
    project.wait_started(job)
    project.wait_done()
    assert "was declared dead; it ends" in supervisor.errors()
    assert supervisor.stop() == 0
    assert {project.state_of(job_id) for job_id in (slow, job)} == {"finished"}
    assert len(project.attempts()) == 2
    assert project.count("processes") == 0


def test_the_environment_and_the_command_line_choose_the_mode(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2))
    environ = {**project.environment(), "STEADY_QUEUE_SUPERVISOR_MODE": "threads"}
    said = subprocess.run(
        [sys.executable, "-m", "django", "steady_queue", "--drain"],
        cwd=project.folder, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert said.returncode == 1
    assert "supervisor_mode" in said.stderr
    assert "'fork' or 'async'" in said.stderr
    [job] = project.enqueue("work")
    supervisor = project.start("--mode", "async", "--drain")
    assert supervisor.wait_exit() == 0
    assert project.attempts_at(job)[0].pid == supervisor.pid


def test_a_wrong_mode_is_refused(make_project: MakeProject) -> None:
    assert "'fork' or 'async'" in refusal(make_project({"supervisor_mode": "spawn"}))


EMBEDDED = """
import django, os, signal, subprocess, threading, time
django.setup()
from django.db import connection, transaction
from steady_queue_core.compat import task_started
from steady_queue_core.embedding import EmbeddedQueue
from steady_queue_core.models import ClaimedExecution, Job, Process
from tests.faultapp.tasks import awork, spin, work

def wait_for(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, condition
        time.sleep(0.01)

started = []
task_started.connect(lambda **told: started.append(told["task_result"].id), weak=False)

def done():
    return not Job.objects.filter(finished_at=None).exists()
"""


def run(project: Project, script: str) -> str:
    """Run a script that embeds the queue; return what it printed."""
    said = subprocess.run(
        [sys.executable, "-c", EMBEDDED + textwrap.dedent(script)],
        cwd=project.folder, env=project.environment(), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "Traceback" not in said.stderr, said.stderr
    return said.stdout


def test_embedded_it_leaves_the_process_as_it_was(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2, threads=2))
    said = run(
        project,
        """
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)
        def state():
            wakeup = signal.set_wakeup_fd(-1)
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout")
                return [signal.getsignal(n) for n in numbers], wakeup, cursor.fetchone()

        def elsewhere():
            found = []
            def look():
                with connection.cursor() as cursor:
                    cursor.execute("PRAGMA busy_timeout")
                    found.append(cursor.fetchone())
                connection.close()
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            return found

        before, child = state(), subprocess.Popen(["sleep", "1"])
        stock = elsewhere()
        for _ in range(2):
            with EmbeddedQueue():
                assert connection.connection is not None
                assert elsewhere() == stock
                [each.enqueue(0.05) for each in (work, work, awork)]
                wait_for(done)
                print(Process.objects.count(), "processes")
            assert state() == before
            # Its threads end; those that serve coroutines belong to asgiref.
            ours = lambda: [t for t in threading.enumerate() if "steady-queue" in t.name]
            wait_for(lambda: not ours())
            print(Process.objects.count(), ClaimedExecution.objects.count())
        print(child.wait())
        """,
    )
    assert said.split("\n")[:-1] == ["3 processes", "0 0"] * 2 + ["0"]
    assert verdict_of_embedded(project) == ["finished"] * 6


def verdict_of_embedded(project: Project) -> list[str]:
    return ["+".join(row.states) for row in project.snapshot().jobs.values()]


def test_embedded_a_stop_lets_tasks_end_or_breaks_them_off(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=2, shutdown_timeout=1.5))
    said = run(
        project,
        """
        queue = EmbeddedQueue()
        queue.start()
        queue.start()
        short, long = work.enqueue(0.7), spin.enqueue(4.0)
        wait_for(lambda: len(started) == 2)
        print(queue.stop(timeout=0.1), queue.running)
        print(queue.stop(), queue.running)
        time.sleep(3.0)  # Nothing goes on that somebody else may have begun by now.
        short.refresh(), long.refresh()
        print(short.status, short.attempts, long.status, long.attempts)
        """,
    )
    assert said.splitlines() == ["False True", "True False", "SUCCESSFUL 1 READY 0"]
    [short, long] = sorted(project.snapshot().jobs)
    assert project.attempts_at(short)[0].ended_at is not None
    assert [attempt.ended_at for attempt in project.attempts_at(long)] == [None]


def test_embedded_the_queue_is_stopped_when_python_exits(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=2))
    run(
        project,
        """
        EmbeddedQueue().start()
        work.enqueue(1.0)
        wait_for(lambda: started)
        """,
    )
    assert project.count("processes") == 0
    assert verdict_of_embedded(project) == ["finished"]


def test_embedded_tasks_can_do_everything_until_they_have_ended(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, task_modules=["tests.faultapp.rude"]))
    run(
        project,
        """
        from tests.faultapp.rude import in_own_transaction
        queue = EmbeddedQueue()
        queue.start()
        in_own_transaction.enqueue("kept", 0.5)
        wait_for(lambda: started)
        # It outlives the main thread, and the queue does not wait for it.
        threading.Thread(target=wait_for, args=[lambda: not queue.running]).start()
        """,
    )
    assert verdict_of_embedded(project) == ["finished"]
    assert project.query("SELECT text FROM faultapp_note") == [("kept",)]


APP = """
import threading, time

from django.apps import AppConfig

class Web(AppConfig):
    name = "embedded"

    def ready(self):
        from steady_queue_core.embedding import EmbeddedQueue

        EmbeddedQueue().start()
        time.sleep(0.5)
        # Other apps have not registered their tasks yet.
        assert "worker" not in "".join(thread.name for thread in threading.enumerate())
"""


def test_embedded_it_starts_from_an_app_config(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1), extra='INSTALLED_APPS.insert(0, "embedded.Web")')
    (project.folder / "embedded.py").write_text(APP)
    run(project, "work.enqueue(0.0)\nwait_for(done)")
    assert verdict_of_embedded(project) == ["finished"]
    assert project.count("processes") == 0


BROKEN = """
from django.apps import AppConfig

class Broken(AppConfig):
    name = "broken"

    def ready(self):
        raise RuntimeError("this app cannot be loaded")
"""


def test_embedded_it_lets_a_process_end_whose_apps_cannot_be_loaded(
    make_project: MakeProject,
) -> None:
    project = make_project(
        queue(processes=1), extra='INSTALLED_APPS[:0] = ["embedded.Web", "broken.Broken"]'
    )
    (project.folder / "embedded.py").write_text(APP)
    (project.folder / "broken.py").write_text(BROKEN)
    ended = project.manage("check")
    assert ended.returncode == 1
    assert "this app cannot be loaded" in ended.stderr


def test_embedded_within_a_transaction_it_is_refused(make_project: MakeProject) -> None:
    said = run(
        make_project(queue(processes=1)),
        """
        from steady_queue_core.errors import SupervisorContextError
        with transaction.atomic():
            connection.ensure_connection()
            try:
                EmbeddedQueue().start()
            except SupervisorContextError as error:
                print(error)
        """,
    )
    assert "A transaction is open on the database 'default'" in said


def test_a_supervisor_of_threads_has_no_children(make_project: MakeProject) -> None:
    project = make_project(in_threads())
    supervisor = project.start()
    wait_for(lambda: project.count("processes") == 3, 20, "registrations")
    assert supervisor.children() == []
    assert threads_of(supervisor) > 3
    assert supervisor.stop() == 0
    assert not proc.in_session(supervisor.pid)
