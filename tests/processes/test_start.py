"""Starting: refusals that say why, pidfiles, processes that do not get ready, and drain mode."""

from __future__ import annotations

import os
import re
import signal
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from ..sizes import sized
from . import proc
from .conftest import MakeProject
from .scenarios import durations, queue, refusal, stop_all, verdict
from .waiting import wait_for

# --- refusals --------------------------------------------------------------------------------


def test_without_migrations_it_says_what_to_run(make_project: MakeProject) -> None:
    message = refusal(make_project(template=None))
    assert "lacks the tables of Steady Queue" in message
    assert "manage.py migrate" in message


def test_an_unknown_setting_is_named_with_the_nearest_valid_one(
    make_project: MakeProject,
) -> None:
    message = refusal(make_project({"wrokers": []}))
    assert "wrokers" in message
    assert "workers" in message


def test_a_task_module_that_does_not_exist_is_named(make_project: MakeProject) -> None:
    assert "nowhere" in refusal(make_project({"task_modules": ["nowhere.tasks"]}))


def test_a_database_without_a_dialect_is_named(make_project: MakeProject) -> None:
    project = make_project(extra="DATABASES['default']['ENGINE'] = 'odd_engine'")
    package = project.folder / "odd_engine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "base.py").write_text(
        "from django.db.backends.sqlite3 import base\n"
        "class DatabaseWrapper(base.DatabaseWrapper):\n"
        "    vendor = 'odd'\n"
    )
    message = refusal(project)
    assert "default" in message
    assert "odd" in message
    assert "dialect" in message


# --- pidfiles --------------------------------------------------------------------------------

PIDFILE = {"supervisor_pidfile": "queue.pid"}


def test_a_second_supervisor_with_the_same_pidfile_is_refused(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, **PIDFILE))
    first = project.start()
    first.wait_ready(1)
    message = refusal(project)
    assert f"already running (pid {first.pid})" in message
    assert "queue.pid" in message
    assert first.stop() == 0
    assert not (project.folder / "queue.pid").exists()
    last = project.start()
    last.wait_ready(1)
    assert last.stop() == 0


@pytest.mark.parametrize("content", [b"", b"nonsense\xff\n", f"{os.getpid()}\n".encode()],
                         ids=["empty", "nonsense", "another process"])  # fmt: skip
def test_a_pidfile_that_nobody_holds_does_not_matter(
    make_project: MakeProject, content: bytes
) -> None:
    project = make_project(queue(processes=1, **PIDFILE))
    path = project.folder / "queue.pid"
    path.write_bytes(content)
    supervisor = project.start()
    supervisor.wait_ready(1)
    assert path.read_bytes() == f"{supervisor.pid}\n".encode()
    assert supervisor.stop() == 0
    assert not path.exists()


def test_a_pidfile_that_is_a_link_is_refused_and_not_followed(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, **PIDFILE))
    target = project.folder / "precious"
    target.write_text("keep")
    (project.folder / "queue.pid").symlink_to(target)
    assert "queue.pid" in refusal(project)
    assert target.read_text() == "keep"


def test_a_pidfile_in_an_impossible_place_is_refused(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    (project.folder / "file").touch()
    assert "file/queue.pid" in refusal(project, "--pidfile", "file/queue.pid")


@pytest.mark.fresh
def test_of_several_supervisors_that_start_at_once_exactly_one_runs(
    make_project: MakeProject, pytestconfig: pytest.Config
) -> None:
    project = make_project(queue(processes=1, **PIDFILE))
    racers = [project.start() for _ in range(sized(pytestconfig, merge=3, whole=5))]
    wait_for(
        lambda: sum(racer.process.poll() is None for racer in racers) == 1, 30, "a single winner"
    )
    [winner] = [racer for racer in racers if racer.process.poll() is None]
    winner.wait_ready(1)
    losers = [racer for racer in racers if racer is not winner]
    assert [loser.wait_exit() for loser in losers] == [1] * len(losers)
    assert all("already running" in loser.errors() for loser in losers)
    assert (project.folder / "queue.pid").read_text() == f"{winner.pid}\n"
    assert winner.stop() == 0


# --- processes that do not get ready ---------------------------------------------------------

# In a forked process, before it does anything else: end, or hang, as a file in the folder says.
TROUBLE = """
import os, time

def trouble():
    if (BASE_DIR / "crash").exists():
        os._exit(3)
    if (BASE_DIR / "hang").exists():
        (BASE_DIR / "hanging").touch()
        time.sleep(3600)

os.register_at_fork(after_in_child=trouble)
"""


def starts(errors: str) -> list[float]:
    """Return when workers were started, in seconds, by the supervisor's log."""
    lines = re.findall(r"^(.{23}) \d+ INFO Started worker-", errors, re.MULTILINE)
    return [datetime.strptime(line, "%Y-%m-%d %H:%M:%S,%f").timestamp() for line in lines]


def test_processes_that_crash_at_once_are_replaced_ever_more_slowly(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, dispatchers=[]), extra=TROUBLE)
    (project.folder / "crash").touch()
    supervisor = project.start()
    # Only a process that has ended is past its look at the file.
    ended = re.compile(r"worker-\S+ \(pid \d+\) ended with exit code 3")
    wait_for(lambda: len(ended.findall(supervisor.errors())) == 5, 20, "five crashes")
    (project.folder / "crash").unlink()
    supervisor.wait_ready(1, seconds=10)
    pauses = [later - earlier for earlier, later in pairwise(starts(supervisor.errors()))]
    assert len(pauses) == 5
    assert max(pauses[:3]) < 0.9
    assert [pause >= least for pause, least in zip(pauses[3:], (0.9, 1.9), strict=True)] == [
        True
    ] * 2
    [job] = project.enqueue("work")
    project.wait_done(10)
    assert project.state_of(job) == "finished"
    assert supervisor.stop() == 0


def test_a_process_that_hangs_at_its_start_is_replaced(make_project: MakeProject) -> None:
    project = make_project(
        queue(processes=1, dispatchers=[], fork_startup_timeout=1), extra=TROUBLE
    )
    (project.folder / "hang").touch()
    supervisor = project.start()
    wait_for((project.folder / "hanging").exists, 20, "a process that hangs")
    [hanging] = supervisor.wait_children()
    (project.folder / "hang").unlink()
    [worker] = supervisor.wait_ready(1, seconds=10)
    assert worker != hanging
    assert not proc.alive(hanging)
    assert "did not become ready" in supervisor.errors()
    assert supervisor.stop() == 0


def test_a_supervisor_whose_processes_hang_at_their_start_can_be_stopped(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, shutdown_timeout=1), extra=TROUBLE)
    (project.folder / "hang").touch()
    supervisor = project.start()
    wait_for((project.folder / "hanging").exists, 20, "a process that hangs")
    assert supervisor.stop(seconds=8) == 0
    assert not proc.in_session(supervisor.pid)


# --- drain mode ------------------------------------------------------------------------------


def test_drain_mode_ends_when_nothing_is_left_to_run(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2, threads=2))
    project.enqueue("work", *durations(50, 0.02))
    project.enqueue("awork", *durations(20, 0.02))
    delayed = project.enqueue("work", [0.1], [0.1], delay=2.0)
    flaky = project.enqueue("flaky", [1], [2], [5])
    [far] = project.enqueue("work", [0.0], delay=3600.0)
    began = time.monotonic()
    supervisor = project.start("--drain")
    assert supervisor.wait_exit(25) == 0
    assert time.monotonic() - began < 15
    assert [project.state_of(job_id) for job_id in delayed] == ["finished"] * 2
    assert [project.state_of(job_id) for job_id in flaky] == ["finished", "finished", "failed"]
    assert [len(project.attempts_at(job_id)) for job_id in flaky] == [2, 3, 3]
    assert project.state_of(far) == "scheduled"
    project.enqueued.remove(far)
    complaints = verdict(project, own_failures=flaky)
    assert complaints == [f"job {far} was never enqueued"]
    assert project.count("processes") == 0


def test_drain_mode_ends_at_once_when_there_is_nothing(make_project: MakeProject) -> None:
    project = make_project()
    began = time.monotonic()
    assert project.start("--drain").wait_exit() == 0
    assert time.monotonic() - began < 8


LOADED = """
import atexit, sys

def tell():
    print("loaded:", "steady_queue_core.command_line.registry" in sys.modules, file=sys.stderr)

atexit.register(tell)
"""


@pytest.mark.parametrize(
    "words",
    [pytest.param(("--drain",), marks=pytest.mark.thorough), ("--drain", "--skip-recurring")],
)
@pytest.mark.fresh
def test_the_queue_starts_without_its_subcommands(
    words: tuple[str, ...], make_project: MakeProject
) -> None:
    supervisor = make_project(extra=LOADED).start(*words)
    assert supervisor.wait_exit() == 0
    assert "loaded: False" in supervisor.errors()


def test_drain_mode_serves_only_the_queues_that_it_was_given(make_project: MakeProject) -> None:
    project = make_project()
    [mine] = project.enqueue("work", queue="mine")
    [other] = project.enqueue("work", queue="other")
    assert project.start("--drain", "--queues", "mine").wait_exit() == 0
    assert [project.state_of(job_id) for job_id in (mine, other)] == ["finished", "ready"]


def test_drain_mode_survives_the_death_of_a_worker(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1))
    [job] = project.enqueue("work_again", [1.0])
    supervisor = project.start("--drain")
    pid = project.wait_started(job).pid
    supervisor.send(signal.SIGKILL, pid)
    assert supervisor.wait_exit() == 0
    assert project.state_of(job) == "finished"
    assert verdict(project) == []


# --- what forked processes inherit -----------------------------------------------------------

# Notes what the supervisor has open, and how many threads it has, whenever it forks.
FORK_NOTES = """
import os

def note():
    links = []
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass
    links = [link for link in links if link.endswith(("db.sqlite3", "-wal", "-shm"))]
    threads = len(os.listdir("/proc/self/task"))
    with open(BASE_DIR / "forks", "a") as file:
        file.write(f"{threads} {' '.join(links)}\\n")

os.register_at_fork(before=note)
"""


@pytest.mark.fresh
@pytest.mark.thorough
def test_nothing_of_the_database_is_carried_over_a_fork(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2, threads=2, **PIDFILE), extra=FORK_NOTES)
    supervisor = project.start()
    supervisor.wait_ready(2)
    for _ in range(4):
        # Each death has the supervisor read and write before it forks a successor.
        jobs = project.enqueue("work_again", *[[0.3]] * 6)
        pid = project.wait_started(jobs[0]).pid
        supervisor.send(signal.SIGKILL, pid)
        project.wait_done(20)
        supervisor.wait_ready(2)
    forks = (project.folder / "forks").read_text().splitlines()
    assert len(forks) >= 3 + 4
    assert {int(line.split()[0]) for line in forks} == {1}, "threads at a fork"
    assert [line for line in forks if len(line.split()) > 1] == []
    # Locks belong to open files, which forked processes share: they must not keep them.
    for pid in supervisor.children():
        names = [Path(link).name for link in proc.open_files(pid).values()]
        assert "queue.pid" not in names
        assert names.count("db.sqlite3-queue.lock") <= 1, "another one than its own"
    stop_all(project)
    assert "multi-threaded" not in supervisor.errors()
    assert project.query("PRAGMA integrity_check") == [("ok",)]
    assert verdict(project) == []


ALONE = "forked beside 0 threads"
WATCHING_FORKS = """
import os, sys, threading

def count_threads():
    print("forked beside", threading.active_count() - 1, "threads", file=sys.stderr, flush=True)

os.register_at_fork(before=count_threads)
"""


@pytest.mark.fresh
def test_no_other_thread_lives_while_a_process_is_forked(make_project: MakeProject) -> None:
    """Neither at the start nor later: the child would inherit the locks that it holds."""
    project = make_project(queue(processes=1, dispatchers=[]), extra=WATCHING_FORKS)
    supervisor = project.start()
    for replaced in range(1, 4):
        [worker] = supervisor.wait_ready(1)
        supervisor.send(signal.SIGKILL, worker)
        wait_for(lambda times=replaced: supervisor.errors().count(ALONE) > times, 20, "a fork")
    supervisor.wait_ready(1)
    assert supervisor.errors().count("forked beside") == 4
    assert supervisor.stop() == 0
    assert "DeprecationWarning" not in supervisor.errors()


def test_workers_leave_alone_what_the_command_line_excludes(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    project.enqueue("work", *[[0]] * 150, queue="mail_bulk")
    supervisor = project.start("--exclude-queues", "mail*, slow")
    supervisor.wait_ready()
    project.enqueue("work", [0], [0], queue="other")
    wait_for(lambda: project.unfinished() == 150, 20, "the end of the other jobs")
    assert project.count("ready_executions") == 150
    assert supervisor.stop() == 0
    assert project.count("ready_executions") == 150
