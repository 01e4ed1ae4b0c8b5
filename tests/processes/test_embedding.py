"""The command called from a project's own code: what it refuses, and what it leaves behind."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue

PREAMBLE = """
import django, signal, threading, sys
django.setup()
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.backends.signals import connection_created
from tests.faultapp.tasks import work

def drain(*arguments):
    try:
        call_command("steady_queue", "--drain", *arguments)
    except CommandError as error:
        print("refused:", error)
"""


def run(project: Project, script: str) -> str:
    """Run a script of the project; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
        cwd=project.folder,
        env=project.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_calling_process_is_left_as_it_was(make_project: MakeProject) -> None:
    said = run(
        make_project(queue(processes=1)),
        """
        def state():
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout")
                patience = cursor.fetchone()
            numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)
            wakeup = signal.set_wakeup_fd(-1)
            return [signal.getsignal(number) for number in numbers], wakeup, patience

        before = state()
        receivers = len(connection_created.receivers)
        work.enqueue(0.0)
        drain()
        drain()
        print("same" if state() == before else (before, state()))
        print(len(connection_created.receivers) - receivers, threading.active_count())
        """,
    )
    assert said.splitlines()[-2:] == ["same", "0 1"]


def test_a_process_of_the_caller_is_left_to_the_caller(make_project: MakeProject) -> None:
    said = run(
        make_project(queue(processes=1)),
        """
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
        work.enqueue(0.5)
        drain()
        print(child.wait())
        """,
    )
    assert said.splitlines()[-1] == "3"


def test_within_a_transaction_it_is_refused(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    said = run(
        project,
        """
        with transaction.atomic():
            work.enqueue(0.0)
            drain()
        """,
    )
    assert "A transaction is open on the database 'default'" in said
    assert "TransactionTestCase" in said
    assert project.count("ready_executions") == 1
    assert project.count("processes") == 0


def test_in_a_thread_it_is_refused_and_holds_no_pidfile(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    said = run(
        project,
        """
        thread = threading.Thread(target=drain, args=["--pidfile", "queue.pid"])
        thread.start()
        thread.join()
        drain("--pidfile", "queue.pid")
        """,
    )
    assert said.count("refused:") == 1
    assert "only the main thread" in said
    assert not (project.folder / "queue.pid").exists()


IN_MEMORY = """
    DATABASES["default"]["NAME"] = "file:memory?mode=memory&cache=shared"
"""


def test_a_database_in_memory_is_refused(make_project: MakeProject) -> None:
    said = run(
        make_project(queue(processes=1), extra=IN_MEMORY),
        """
        call_command("migrate", verbosity=0)
        work.enqueue(0.0)
        drain()
        """,
    )
    assert "'default' is in memory: worker processes cannot see it" in said
    assert "['TEST']['NAME']" in said


@pytest.mark.parametrize(
    "redirection",
    [
        pytest.param(">&-", id="closed", marks=pytest.mark.thorough),
        pytest.param(">/dev/full", id="full"),
        pytest.param("| true", id="nobody-reads", marks=pytest.mark.thorough),
    ],
)
def test_an_output_that_takes_nothing_stops_no_queue(
    redirection: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=1))
    [job] = project.enqueue("work")
    subprocess.run(
        ["bash", "-c", f"{sys.executable} -m django steady_queue --drain {redirection}"],
        cwd=project.folder,
        env={**project.environment(), "PYTHONIOENCODING": "ascii"},
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert project.state_of(job) == "finished"
    assert project.count("processes") == 0
