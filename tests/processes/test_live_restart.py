"""HUP: new code takes over under the pid of the old, without a gap."""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from . import proc
from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project, Supervisor
from .scenarios import freeze, queue, refusal, stop_all, verdict
from .waiting import wait_for

#: What takes the place of a supervisor gets the environment that this was started with.
pytestmark = pytest.mark.fresh
#: Settings that have the tasks of ``deployed.py`` in the project's folder.
VERSIONED = {"task_modules": ["tests.faultapp.versioned"]}
#: Becomes the program of its arguments, with the terminal of that name.
WITH_TERMINAL = (
    "import os, sys; os.set_inheritable(os.open(sys.argv[1], os.O_RDWR), True); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


def restart(supervisor: Supervisor, workers: int = 1) -> list[int]:
    """Send HUP; return the pids of the new workers once they are registered."""
    former = set(supervisor.workers())
    supervisor.send(signal.SIGHUP)
    return wait_new(supervisor, former, workers)


def wait_new(
    supervisor: Supervisor,
    former: set[int],
    workers: int = 1,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[int]:
    def new() -> list[int]:
        meanwhile()
        if supervisor.process.poll() is not None:
            raise AssertionError(f"the supervisor has ended:\n{supervisor.errors()}")
        found = [pid for pid in supervisor.workers() if pid not in former]
        return found if len(found) >= workers else []

    return wait_for(new, 30, f"new workers: {supervisor.errors()}")


def wait_ended(supervisor: Supervisor, *pids: int, seconds: float = 15.0) -> None:
    wait_for(lambda: not set(pids) & set(supervisor.children()), seconds, f"the end of {pids}")


def result(project: Project, job_id: int) -> object:
    wait_for(lambda: project.state_of(job_id) == "finished", 20, f"the end of job {job_id}")
    query = "SELECT return_value FROM steady_queue_jobs WHERE id = ?"
    return json.loads(project.query(query, job_id)[0][0])


def busy(project: Project, seconds: float) -> tuple[Supervisor, int, int]:
    """Return a supervisor, its only worker, and the job that this runs."""
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    [job] = project.enqueue("work_again", [seconds])
    project.wait_started(job)
    return supervisor, worker, job


@pytest.mark.parametrize(
    "executor", ["threads", pytest.param("processes", marks=pytest.mark.thorough)]
)
def test_new_code_takes_over_and_old_workers_finish_their_tasks(
    make_project: MakeProject, executor: str
) -> None:
    settings = queue(processes=1, threads=2, shutdown_timeout=0.2)
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    supervisor, old, long = busy(project, 15.0)
    [new] = restart(supervisor)
    wait_for(lambda: "All processes are in place" in supervisor.errors(), 10, "the succession")
    [short] = project.enqueue("work")
    project.wait_started(short)
    assert old in supervisor.workers()
    assert project.state_of(long) == "claimed"
    project.wait_done()
    wait_ended(supervisor, old)
    assert supervisor.workers() == [new]
    stop_all(project)
    assert [len(project.attempts_at(job)) for job in (long, short)] == [1, 1]
    assert project.count("processes") == 0


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_restarts_under_load_lose_nothing_and_leave_no_gap(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    """At a scale of 5: HUP every 3 seconds for 60 seconds, with jobs of up to 20 seconds."""
    lasting, longest = 12 * SCALE, 4.0 * SCALE
    project = make_project(queue(processes=2, threads=8), **where)
    source = random.Random(3)
    # More than 16 threads do meanwhile. In three seconds, fewer long ones than there are threads:
    # with all of them taken, there would be no start whatever became of the workers.
    jobs = round(lasting * 900)
    calls = [
        [source.uniform(0, longest) if source.random() < 0.008 else source.uniform(0, 0.1)]
        for _ in range(jobs)
    ]

    def keep_busy() -> None:
        if project.count("ready_executions") < 500:
            project.enqueue("work", *calls[:500])

    def is_time() -> bool:
        keep_busy()
        return time.monotonic() >= due

    supervisor = project.start()
    first = supervisor.wait_ready(2)
    project.enqueue("work", *calls)
    project.wait_started(project.enqueued[0])
    end, restarts = time.monotonic() + lasting, 0
    known = set(first)
    while time.monotonic() < end:
        due = time.monotonic() + 3.0
        supervisor.send(signal.SIGHUP)
        known.update(wait_new(supervisor, known, 2, keep_busy))
        restarts += 1
        wait_for(is_time, 5, "the time for the next one")
    taken = time.monotonic_ns()
    assert project.count("ready_executions") > 0  # There was work all the time.
    project.wait_done(60 + 3 * longest)
    stop_all(project)
    attempts = project.attempts()
    starts = sorted(attempt.started_at for attempt in attempts)
    busy_time = [each for each in starts if each < min(taken, starts[-1])]
    gap = max(later - earlier for earlier, later in pairwise(busy_time)) / 1e9
    print(
        f"\n{len(attempts)} jobs, {restarts} restarts in {lasting:g} s, {len(known)} workers, "
        f"longest time without a start {gap:.2f} s"
    )
    assert verdict(project) == []
    assert len(attempts) == len(project.enqueued)
    assert {row.states for row in project.snapshot().jobs.values()} == {("finished",)}
    assert restarts >= lasting / 6
    assert gap < 1.0
    assert "refused" not in supervisor.errors()


def test_changed_code_runs_new_jobs_at_once(make_project: MakeProject) -> None:
    settings = queue(processes=1, **VERSIONED)
    project = make_project(settings, files={"deployed.py": "VERSION = 1"})
    supervisor = project.start()
    supervisor.wait_ready()
    [before] = project.enqueue("versioned:version")
    assert result(project, before) == 1
    (project.folder / "deployed.py").write_text("VERSION = 200")
    restart(supervisor)
    wait_for(lambda: "All processes are in place" in supervisor.errors(), 10, "the succession")
    jobs = project.enqueue("versioned:version", *[[]] * 20)
    assert {result(project, job) for job in jobs} == {200}
    stop_all(project)


BROKEN = {
    "import": ("import nothing_of_this_name\n", "nothing_of_this_name"),
    "syntax": ("def (:\n", "invalid syntax"),
    "check": (
        "from django.core import checks\n"
        "@checks.register\n"
        "def failing(app_configs, **kwargs):\n"
        "    return [checks.Error('it is Tuesday', id='versioned.E001')]\n",
        "it is Tuesday",
    ),
    "exit": ("import os\nos._exit(3)\n", "ended with exit code 3"),
}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(*case, id=name, marks=[] if name == "check" else pytest.mark.thorough)
        for name, case in BROKEN.items()
    ],
)
def test_broken_code_is_refused_and_the_old_goes_on(
    make_project: MakeProject, code: str, message: str
) -> None:
    settings = queue(processes=1, **VERSIONED)
    extra = "import versioned_checks\n" if "checks" in code else ""
    files = {"deployed.py": "VERSION = 1", "versioned_checks.py": ""}
    project = make_project(settings, files=files, extra=extra)
    supervisor = project.start(checks=True)
    workers = supervisor.wait_ready()
    changed = "versioned_checks.py" if extra else "deployed.py"
    (project.folder / changed).write_text(code)
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: "The new code cannot take over" in supervisor.errors(), 30, "the refusal")
    assert message in supervisor.errors()
    project.enqueue("versioned:version" if extra else "work")
    project.wait_done()
    assert supervisor.workers() == workers
    (project.folder / changed).write_text(files[changed])
    restart(supervisor)
    stop_all(project)


@pytest.mark.thorough
def test_other_settings_are_taken_over(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    supervisor = project.start()
    supervisor.wait_ready()
    settings = project.folder / "project_settings.py"
    settings.write_text(settings.read_text() + '\nSTEADY_QUEUE["workers"][0]["processes"] = 3\n')
    assert len(restart(supervisor, 3)) == 3
    stop_all(project)


@pytest.mark.thorough
def test_another_mode_is_refused(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    supervisor = project.start()
    supervisor.wait_ready()
    settings = project.folder / "project_settings.py"
    settings.write_text(settings.read_text() + '\nSTEADY_QUEUE["supervisor_mode"] = "async"\n')
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: "run threads in place of processes" in supervisor.errors(), 30, "the refusal")
    stop_all(project)


@pytest.mark.thorough
def test_threads_start_anew_after_their_tasks(make_project: MakeProject) -> None:
    settings = queue(processes=1, shutdown_timeout=10, **VERSIONED)
    files = {"deployed.py": "VERSION = 1"}
    project = make_project(settings, files=files)
    supervisor = project.start("--mode", "async")
    wait_for(lambda: project.count("processes") >= 2, 20, "the threads")
    [job] = project.enqueue("work", [1.5])
    project.wait_started(job)
    (project.folder / "deployed.py").write_text("VERSION = 200")
    supervisor.send(signal.SIGHUP)
    [later] = project.enqueue("versioned:version")
    wait_for(lambda: project.state_of(job) == "finished", 20, "the end of the task")
    wait_for(lambda: supervisor.output().count("Steady Queue") > 1, 20, "the next start")
    [last] = project.enqueue("versioned:version")
    assert result(project, last) == 200
    assert result(project, later) in (1, 200)
    stop_all(project)
    assert len(project.attempts_at(job)) == 1


def test_a_stop_meanwhile_gives_old_workers_their_time_and_no_more(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, shutdown_timeout=0.5))
    supervisor, _, job = busy(project, 60.0)
    restart(supervisor)
    began = time.monotonic()
    assert supervisor.stop() == 0
    assert time.monotonic() - began < 8
    assert project.state_of(job) == "ready"
    assert not proc.in_session(supervisor.pid)
    assert project.count("processes") == 0


def test_a_stop_that_arrives_while_code_is_exchanged_is_graceful(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, shutdown_timeout=20))
    supervisor, _, job = busy(project, 6.0)
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: "The new code takes over" in supervisor.errors(), 30, "the exchange")
    assert supervisor.stop(seconds=30) == 0
    assert project.state_of(job) == "finished"
    assert len(project.attempts_at(job)) == 1
    assert project.count("processes") == 0


@pytest.mark.thorough
def test_new_settings_that_cannot_be_had_do_not_end_it(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    supervisor, _, job = busy(project, 8.0)
    settings = project.folder / "project_settings.py"
    with socket.create_server(("127.0.0.1", 0)) as server:
        changed = {"probe_port": server.getsockname()[1], "supervisor_pidfile": "/proc/none/pid"}
        settings.write_text(f"{settings.read_text()}\nSTEADY_QUEUE.update({changed!r})\n")
        restart(supervisor)
    assert "The probe cannot listen at 127.0.0.1" in supervisor.errors()
    assert "The pidfile /proc/none/pid cannot be used" in supervisor.errors()
    project.wait_done()
    stop_all(project)
    assert len(project.attempts_at(job)) == 1


@pytest.mark.thorough
def test_an_old_worker_that_is_killed_has_no_successor(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    supervisor, old, job = busy(project, 60.0)
    [new] = restart(supervisor)
    supervisor.send(signal.SIGKILL, old)
    assert project.wait_started(job, times=2).pid == new
    wait_for(lambda: supervisor.workers() == [new], 10, "one worker")
    assert supervisor.stop(signal.SIGQUIT) == 0
    assert [each.pid for each in project.attempts_at(job)] == [old, new]


@pytest.mark.thorough
def test_a_worker_without_a_journal_file_is_rescued_as_well(make_project: MakeProject) -> None:
    """Its journal is in memory, which the new code takes over."""
    settings = queue(processes=1, state_directory="/proc/no/such/folder")
    project = make_project(settings)
    supervisor, old, job = busy(project, 60.0)
    [new] = restart(supervisor)
    supervisor.send(signal.SIGKILL, old)
    assert project.wait_started(job, times=2).pid == new
    assert supervisor.stop(signal.SIGQUIT) == 0
    assert [each.pid for each in project.attempts_at(job)] == [old, new]
    [(attempts,)] = project.query("SELECT attempts FROM steady_queue_jobs WHERE id = ?", job)
    assert attempts == 1  # The attempt that was lost, and not the one that was broken off.


@pytest.mark.thorough
def test_a_journal_file_that_was_removed_keeps_no_code_from_taking_over(
    make_project: MakeProject,
) -> None:
    """Programs that clean temporary folders do that."""
    project = make_project(queue(processes=1, state_directory="marks"))
    supervisor, old, job = busy(project, 60.0)
    [journal] = (project.folder / "marks").glob("*.journal")
    journal.unlink()
    [new] = restart(supervisor)
    supervisor.send(signal.SIGHUP)
    [newer] = wait_new(supervisor, {old, new})
    supervisor.send(signal.SIGKILL, old)
    assert project.wait_started(job, times=2).pid == newer
    wait_for(lambda: new not in supervisor.workers(), 10, "the end of the one between")
    assert supervisor.stop(signal.SIGQUIT) == 0
    assert [each.pid for each in project.attempts_at(job)] == [old, newer]
    [(attempts,)] = project.query("SELECT attempts FROM steady_queue_jobs WHERE id = ?", job)
    assert attempts == 1


@pytest.mark.thorough
def test_a_frozen_old_worker_is_killed_in_the_end(make_project: MakeProject) -> None:
    settings = queue(processes=1, process_heartbeat_interval=0.3, process_alive_threshold=1.5)
    project = make_project(settings)
    supervisor, old, _ = busy(project, 1.0)
    freeze(project, supervisor, old)
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: "All processes are in place" in supervisor.errors(), 30, "the succession")
    wait_ended(supervisor, old, seconds=30)
    project.wait_done()
    stop_all(project)
    assert verdict(project) == []


@pytest.mark.thorough
def test_the_next_supervisor_recovers_what_a_killed_one_leaves(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    supervisor, _, job = busy(project, 30.0)
    restart(supervisor)
    supervisor.send(signal.SIGKILL)
    wait_for(lambda: not proc.in_session(supervisor.pid), 15, "the end of its children")
    supervisor.process.wait()
    project.start().wait_ready()
    project.wait_started(job, times=2)
    stop_all(project)


@pytest.mark.thorough
def test_a_drain_may_be_limited(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, drain_timeout=1.0))
    supervisor, old, job = busy(project, 60.0)
    [new] = restart(supervisor)
    assert project.wait_started(job, times=2).pid == new
    wait_ended(supervisor, old)
    stop_all(project)
    [(attempts,)] = project.query("SELECT attempts FROM steady_queue_jobs WHERE id = ?", job)
    assert attempts <= 1  # The interruption is no attempt.


@pytest.mark.thorough
def test_hangups_in_a_row_end_with_one_set_of_workers(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2))
    supervisor = project.start()
    former = set(supervisor.wait_ready(2))
    for _ in range(30):
        supervisor.send(signal.SIGHUP)
        time.sleep(0.1)  # The storm's own pace.
    jobs = project.enqueue("work", *[[0.01]] * 50)
    project.wait_done()

    def calm() -> bool:
        workers = set(supervisor.workers())
        return len(workers) == 2 and len(supervisor.children()) == 3 and not workers & former

    wait_for(calm, 30, "two workers and a dispatcher")
    stop_all(project)
    assert len(project.attempts()) == len(jobs)


@pytest.mark.thorough
def test_the_pidfile_is_held_all_the_time(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    pidfile = project.folder / "queue.pid"
    supervisor = project.start("--pidfile", str(pidfile))
    supervisor.wait_ready()
    inode = pidfile.stat().st_ino
    restart(supervisor)
    assert pidfile.stat().st_ino == inode
    assert pidfile.read_text().strip() == str(supervisor.pid)
    assert "already running" in refusal(project, "--pidfile", str(pidfile))
    stop_all(project)
    assert not pidfile.exists()


def test_it_waits_for_the_database_before_it_forgets_dead_workers(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1))
    supervisor, old, job = busy(project, 2.0)
    with project.write_lock():
        supervisor.send(signal.SIGKILL, old)
        wait_for(lambda: old not in supervisor.children(), 10, "its end")
        supervisor.send(signal.SIGHUP)
        wait_for(lambda: "Trying the new code" in supervisor.errors(), 10, "the trial")
    wait_for(lambda: "All processes are in place" in supervisor.errors(), 40, "the succession")
    project.wait_started(job, times=2)
    project.wait_done()
    stop_all(project)
    assert verdict(project) == []


def in_terminal(project: Project) -> tuple[Supervisor, int]:
    """Return a supervisor with a terminal, and the terminal's other end."""
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    return project.start(under=[sys.executable, "-c", WITH_TERMINAL, name]), master


@pytest.mark.thorough
def test_a_closed_terminal_stops_like_term(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=10))
    supervisor, master = in_terminal(project)
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [0.5])
    project.wait_started(job)
    os.close(master)
    assert supervisor.wait_exit() == 0
    assert project.state_of(job) == "finished"


@pytest.mark.thorough
def test_a_terminal_that_is_open_does_not_matter(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    supervisor, master = in_terminal(project)
    supervisor.wait_ready()
    restart(supervisor)
    os.close(master)
    assert supervisor.wait_exit() == 0
